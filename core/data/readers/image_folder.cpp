#include "core/data/readers/image_folder.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/parallel.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

std::size_t channels_of(const ReadOptions& options) { return options.grayscale ? 1 : 3; }

std::string size_text(ImageSize size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height) + " pixels";
}

std::string digest_of(std::span<const std::uint8_t> bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.finish();
}

// Strips the path from the message: skipped files are listed with their path.
std::string without_name(const std::string& message, const fs::path& path) {
  const std::string start = path.string() + ": ";
  return message.starts_with(start) ? message.substr(start.size()) : message;
}

std::size_t image_count(const ImageFolder& folder) {
  return folder.train.size() + (folder.validation ? folder.validation->size() : 0) +
         (folder.test ? folder.test->size() : 0);
}

void check_classes(const NamedArray& labels, const ImageFolder& folder, const std::string& name) {
  std::vector<std::size_t> counts(folder.class_names.size());
  for (const std::int64_t index : std::get<std::vector<std::int64_t>>(labels.values))
    ++counts[static_cast<std::size_t>(index)];
  const auto empty = std::find(counts.begin(), counts.end(), 0u);
  if (empty == counts.end()) return;
  const std::string& class_name = folder.class_names[static_cast<std::size_t>(empty - counts.begin())];
  const SkippedFile& first = folder.skipped.front();
  throw DataError(name + ": no image of class " + quoted_name(class_name) +
                  " can be decoded; the first file that was skipped: " + first.path.string() + ": " +
                  first.reason);
}

// Samples in memory.
class MemoryStore final : public SampleStore {
 public:
  void begin(const std::string&, std::size_t max_bytes) override { samples_.reserve(max_bytes); }
  void append(std::span<const std::uint8_t> bytes) override {
    samples_.insert(samples_.end(), bytes.begin(), bytes.end());
  }
  ArrayValues end(const Shape&) override { return std::exchange(samples_, {}); }

 private:
  std::vector<std::uint8_t> samples_;
};

class FolderDecoder {
 public:
  FolderDecoder(ImageFolder& folder, const fs::path& root, const ReadOptions& options, ImageSize size,
                SampleStore& store)
      : folder_(folder),
        root_(root),
        options_(options),
        size_(size),
        sample_bytes_(channels_of(options) * size.height * size.width),
        store_(store) {}

  // Adds the samples and the labels of a part to `arrays`.
  void decode(const std::vector<ImageEntry>& entries, const std::string& part,
              std::vector<NamedArray>& arrays) {
    const std::size_t per_piece = std::max<std::size_t>(kPieceBytes / sample_bytes_, 1);
    store_.begin("x_" + part, entries.size() * sample_bytes_);
    std::vector<std::int64_t> classes;
    std::vector<std::uint8_t> piece(std::min(per_piece, entries.size()) * sample_bytes_), stored;
    std::size_t stored_bytes = 0;
    const auto store = [&] {
      if (stored_bytes > 0) store_.append(std::span(stored).first(stored_bytes));
    };
    for (std::size_t first = 0; first < entries.size(); first += per_piece) {
      const auto some = std::span(entries).subspan(first, std::min(per_piece, entries.size() - first));
      const std::vector<DecodedFile> files = decode_images(some, options_, size_, piece, store);
      const std::size_t whole = take_whole(some, files, piece, classes);
      if (stored.empty() && first + per_piece < entries.size()) stored.resize(piece.size());
      std::swap(piece, stored);
      stored_bytes = whole;
    }
    store();
    const auto count = static_cast<std::int64_t>(classes.size());
    const Shape shape = {count, static_cast<std::int64_t>(channels_of(options_)), size_.height, size_.width};
    arrays.push_back({"x_" + part, shape, store_.end(shape)});
    arrays.push_back({"y_" + part, {count}, std::move(classes)});
  }

  std::string digest() { return digest_.finish(); }

 private:
  static constexpr std::size_t kPieceBytes = std::size_t{32} << 20;

  // Closes the gaps that skipped files have left in `piece`. Returns the bytes that are left.
  std::size_t take_whole(std::span<const ImageEntry> entries, const std::vector<DecodedFile>& files,
                         std::vector<std::uint8_t>& piece, std::vector<std::int64_t>& classes) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (files[i].other_size) {
        throw DataError(entries[i].path.string() + ": " + files[i].problem +
                        "; give \"resize\": [height, width]");
      }
      if (!files[i].problem.empty()) {
        folder_.skipped.push_back({entries[i].path, files[i].problem});
        continue;
      }
      if (count < i) {
        std::memcpy(piece.data() + count * sample_bytes_, piece.data() + i * sample_bytes_, sample_bytes_);
      }
      classes.push_back(entries[i].class_index);
      ++count;
      const std::string line = files[i].sha256 + "  " + relative_name(root_, entries[i].path) + "\n";
      digest_.update(std::span(reinterpret_cast<const std::uint8_t*>(line.data()), line.size()));
    }
    return count * sample_bytes_;
  }

  ImageFolder& folder_;
  const fs::path& root_;
  const ReadOptions& options_;
  const ImageSize size_;
  const std::size_t sample_bytes_;
  SampleStore& store_;
  Sha256 digest_;
};

}  // namespace

std::string relative_name(const fs::path& root, const fs::path& path) {
  std::string_view name(path.native());
  name.remove_prefix(root.native().size());
  name.remove_prefix(std::min(name.find_first_not_of('/'), name.size()));
  return std::string(name);
}

ImageSize common_size(const ImageFolder& folder, const ReadOptions& options, const std::string& name) {
  if (options.resize && (options.resize->height == 0 || options.resize->width == 0))
    throw ConfigError("resize: height and width must be at least 1");
  if (options.resize) return *options.resize;
  std::string first_problem;
  for (const ImageEntry& entry : folder.train) {
    try {
      const std::vector<std::uint8_t> bytes = read_bytes(entry.path, kMaxImageBytes);
      return decode_image(bytes, {options.grayscale, {}}, entry.path.string()).size;
    } catch (const DataError& error) {
      if (first_problem.empty()) first_problem = error.what();
    }
  }
  throw DataError(name + ": none of its " + std::to_string(folder.train.size()) +
                  " files can be decoded; the first: " + first_problem);
}

std::vector<DecodedFile> decode_images(std::span<const ImageEntry> entries, const ReadOptions& options,
                                       ImageSize size, std::span<std::uint8_t> out,
                                       const std::function<void()>& beside) {
  const std::size_t sample_bytes = channels_of(options) * size.height * size.width;
  if (out.size() < entries.size() * sample_bytes) throw std::logic_error("no room for the decoded images");
  std::vector<DecodedFile> files(entries.size());
  const auto decode = [&](std::size_t i) {
    const fs::path& path = entries[i].path;
    try {
      const std::vector<std::uint8_t> bytes = read_bytes(path, kMaxImageBytes);
      const Image image = decode_image(bytes, {options.grayscale, options.resize}, path.string());
      if (image.size != size) {
        files[i].problem = "has " + size_text(image.size) + ", others have " + size_text(size);
        files[i].other_size = true;
        return;
      }
      std::copy(image.pixels.begin(), image.pixels.end(),
                out.begin() + static_cast<std::ptrdiff_t>(i * sample_bytes));
      files[i].sha256 = digest_of(bytes);
    } catch (const DataError& error) {
      files[i].problem = without_name(error.what(), path);
    }
  };
  // Call 0 is `beside`.
  parallel_for(entries.size() + 1, options.threads, [&](std::size_t i) {
    if (i > 0)
      decode(i - 1);
    else if (beside)
      beside();
  });
  return files;
}

DataArrays read_image_folder(std::span<const fs::path> paths, const ReadOptions& options) {
  const fs::path& root = only_path(paths, "image_folder");
  return decode_image_folder(scan_image_folder(root), root, options);
}

std::uint64_t decoded_bytes(const ImageFolder& folder, const ReadOptions& options, ImageSize size) {
  // An image has at most 2^26 pixels, and a folder fewer than 2^32 files.
  return std::uint64_t{channels_of(options)} * size.height * size.width * image_count(folder);
}

DataArrays decode_image_folder(ImageFolder folder, const fs::path& root, const ReadOptions& options) {
  const ImageSize size = common_size(folder, options, root.string());
  check_memory(image_count(folder),
               {static_cast<std::int64_t>(channels_of(options)), size.height, size.width}, 1, root.string());
  MemoryStore store;
  return decode_image_folder(std::move(folder), root, options, size, store);
}

DataArrays decode_image_folder(ImageFolder folder, const fs::path& root, const ReadOptions& options,
                               ImageSize size, SampleStore& store) {
  DataArrays data;
  FolderDecoder decoder(folder, root, options, size, store);
  decoder.decode(folder.train, "train", data.arrays);
  check_classes(data.arrays.back(), folder, root.string());
  if (folder.validation) decoder.decode(*folder.validation, "validation", data.arrays);
  if (folder.test) decoder.decode(*folder.test, "test", data.arrays);
  data.class_names = std::move(folder.class_names);
  data.skipped = std::move(folder.skipped);
  data.files = {{root, decoder.digest()}};
  return data;
}

}  // namespace sweep
