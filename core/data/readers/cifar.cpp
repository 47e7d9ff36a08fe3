#include "core/data/readers/readers.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPixelBytes = std::size_t{3} * 32 * 32;
constexpr std::uint64_t kMaxNameBytes = 64 << 10;
constexpr std::size_t kRecordsAtOnce = 256;

struct CifarLayout {
  const char* folder;  // in the archive
  CifarRecord record;
  std::span<const std::string_view> files;  // the last one is for tests
  const char* names;                        // one class per line

  auto train() const { return files.first(files.size() - 1); }
};

constexpr CifarLayout kLayout10 = {"cifar-10-batches-bin", kCifar10, kCifar10Files, "batches.meta.txt"};
constexpr CifarLayout kLayout100 = {"cifar-100-binary", kCifar100, kCifar100Files, "fine_label_names.txt"};

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// The folder that holds the files: `path` or the one that the archive makes in it.
fs::path find_folder(const fs::path& path, const CifarLayout& layout) {
  const fs::path inner = path / layout.folder;
  return !is_file(path / layout.files.front()) && is_file(inner / layout.files.front()) ? inner : path;
}

bool is_cifar(const fs::path& path, const CifarLayout& layout) {
  const fs::path first = find_folder(path, layout) / layout.files.front();
  if (!is_file(first)) return false;
  const std::string start = first_bytes(first, layout.record.label_bytes + kPixelBytes);
  return start.size() == layout.record.label_bytes + kPixelBytes &&
         static_cast<unsigned char>(start[layout.record.label_bytes - 1]) <
             static_cast<unsigned>(layout.record.classes);
}

std::vector<std::string> class_names(const fs::path& path, const CifarLayout& layout) {
  const auto classes = static_cast<std::size_t>(layout.record.classes);
  std::vector<std::string> names;
  if (!is_file(path)) {
    for (std::size_t c = 0; c < classes; ++c) names.push_back(std::to_string(c));
    return names;
  }
  const std::vector<std::uint8_t> bytes = read_bytes(path, kMaxNameBytes);
  const std::string text(bytes.begin(), bytes.end());
  for (std::string_view line : lines_of(text)) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!is_utf8(line)) refuse(path, "a name of a class is not UTF-8");
    if (!line.empty()) names.emplace_back(line);
  }
  if (names.size() != classes) refuse(path, "holds {} names of classes, expected {}", names.size(), classes);
  return names;
}

DataArrays read_cifar(std::span<const fs::path> paths, const CifarLayout& layout) {
  const fs::path folder = find_folder(only_path(paths, "CIFAR"), layout);
  std::string missing;
  for (const std::string_view name : layout.train()) {
    if (!is_file(folder / name)) missing += (missing.empty() ? "" : ", ") + std::string(name);
  }
  if (!missing.empty()) refuse(folder, "misses {}", missing);

  DataArrays data;
  data.class_names = class_names(folder / layout.names, layout);
  const auto read_part = [&](const std::string& part, std::span<const std::string_view> names) {
    NamedArray samples{"x_" + part, {0, 3, 32, 32}, std::vector<std::uint8_t>()};
    NamedArray labels{"y_" + part, {0}, std::vector<std::int64_t>()};
    for (const std::string_view name : names) {
      InputFile file(folder / name);
      read_cifar_file(file, layout.record, samples, labels);
      data.files.push_back({folder / name, file.sha256()});
    }
    data.arrays.push_back(std::move(samples));
    data.arrays.push_back(std::move(labels));
  };
  read_part("train", layout.train());
  if (is_file(folder / layout.files.back())) read_part("test", layout.files.last(1));
  return data;
}

}  // namespace

void read_cifar_file(InputFile& file, const CifarRecord& record, NamedArray& samples, NamedArray& labels) {
  const std::size_t record_bytes = record.label_bytes + kPixelBytes;
  auto& pixels = std::get<MaybeOwnedArray<std::uint8_t>>(samples.values).edit();
  auto& classes = std::get<std::vector<std::int64_t>>(labels.values);
  std::vector<std::uint8_t> records(kRecordsAtOnce * record_bytes);
  std::size_t in_file = 0;
  for (;;) {
    const std::size_t bytes = file.read(records);
    if (bytes % record_bytes != 0 || in_file + bytes == 0) {
      refuse(file.name(), "holds {} bytes, which is not a number of records of {} bytes",
             in_file * record_bytes + bytes, record_bytes);
    }
    check_memory(classes.size() + bytes / record_bytes, {3, 32, 32}, 1, file.name());
    for (std::size_t at = 0; at < bytes; at += record_bytes, ++in_file) {
      const int label = records[at + record.label_bytes - 1];
      if (label >= record.classes) {
        refuse(file.name(), "label {} of sample {} (from 0) is out of range: 0 to {}", label, in_file,
               record.classes - 1);
      }
      classes.push_back(label);
      const auto first = records.begin() + static_cast<std::ptrdiff_t>(at + record.label_bytes);
      pixels.insert(pixels.end(), first, first + static_cast<std::ptrdiff_t>(kPixelBytes));
    }
    labels.shape[0] = samples.shape[0] = static_cast<std::int64_t>(classes.size());
    if (bytes < records.size()) return;
  }
}

bool is_cifar10(const fs::path& path) { return is_cifar(path, kLayout10); }
bool is_cifar100(const fs::path& path) { return is_cifar(path, kLayout100); }

DataArrays read_cifar10(std::span<const fs::path> paths, const ReadOptions&) {
  return read_cifar(paths, kLayout10);
}

DataArrays read_cifar100(std::span<const fs::path> paths, const ReadOptions&) {
  return read_cifar(paths, kLayout100);
}

}  // namespace sweep
