#include "core/data/unlabelled/unlabelled_samples.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/data/readers/idx.h"
#include "core/data/readers/image_folder.h"
#include "core/data/readers/images/image_file.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/named_arrays.h"
#include "core/data/readers/npy.h"
#include "core/data/readers/npz.h"
#include "core/data/readers/safetensors/safetensors_data.h"
#include "core/data/unlabelled/table_features.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPicturesAtOnce = 512;

bool starts_picture(const fs::path& path) {
  const std::string start = first_bytes(path, 18);
  return starts_image({reinterpret_cast<const std::uint8_t*>(start.data()), start.size()});
}

// The first bytes of IDX: two zeros, the type (8: bytes), the number of extents.
bool starts_idx_images(std::string_view start) {
  using namespace std::string_view_literals;
  return start.starts_with("\0\0\x08\x03"sv);
}

ReadOptions array_options(const SampleFormat& format) {
  ReadOptions options;
  if (!format.fill_values.empty()) options.missing = MissingValues::kMean;
  return options;
}

ArraySamples read_npy_samples(const fs::path& path, const ReadOptions& options, const Shape& wanted) {
  InputFile file(path);
  const ByteSource source = {[&](std::span<std::uint8_t> out) { return file.read(out); }, file.most_content(),
                             file.name()};
  std::vector<NamedArray> arrays;
  arrays.push_back(read_npy(source, options));
  return samples_from_arrays(std::move(arrays), options, wanted, path.string());
}

ArraySamples read_npz_samples(const fs::path& path, const ReadOptions& options, const Shape& wanted) {
  return samples_from_arrays(read_npz_arrays(path, options), options, wanted, path.string());
}

ArraySamples read_safetensors_samples(const fs::path& path, const ReadOptions& options, const Shape& wanted) {
  InputFile file(path);
  return samples_from_arrays(read_safetensors_arrays(file, options), options, wanted, path.string());
}

ArraySamples read_idx_samples(const fs::path& path, const ReadOptions& options, const Shape& wanted) {
  IdxFile idx = read_idx(path, 3);
  return samples_from_arrays({{"images", std::move(idx.extents), std::move(idx.values)}}, options, wanted,
                             path.string());
}

ArraySamples (*array_reader(const fs::path& path))(const fs::path&, const ReadOptions&, const Shape&) {
  const std::string start = first_bytes(path, 16);
  if (starts_npy(start)) return read_npy_samples;
  if (starts_idx_images(start)) return read_idx_samples;
  if (is_npz(path)) return read_npz_samples;
  if (is_safetensors(path)) return read_safetensors_samples;
  return nullptr;
}

void fill_missing(std::vector<float>& values, const SampleFormat& format) {
  if (format.fill_values.empty()) return;
  const std::size_t plane = element_count(format.shape) / format.fill_values.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) values[i] = format.fill_values[i / plane % format.fill_values.size()];
  }
}

// A network gets byte / 255, but floats as they are: a conversion would have to guess their scale.
void check_type(bool bytes, const SampleFormat& format, const std::string& name) {
  if (bytes == format.bytes) return;
  throw DataError(name + (bytes
                              ? ": holds bytes (uint8), but the network was trained on float32 samples; give "
                                "an array of float32 with the scale of the training data"
                              : ": holds numbers that are not uint8, but the network was trained on bytes; "
                                "give an array of uint8, 0 to 255, as the training data"));
}

// Why the network cannot take pictures; "" if it can.
std::string why_no_pictures(const SampleFormat& format) {
  const std::string samples = "the network was trained on samples of " + to_string(format.shape);
  if (format.shape.size() != 3) return samples + ", not on pictures";
  const std::int64_t channels = format.shape.front();
  if (channels != 1 && channels != 3) {
    return samples + ", but a picture has 1 or 3 channels, not " + std::to_string(channels) +
           "; give an array (.npy, .npz, safetensors)";
  }
  if (format.bytes) return "";
  return samples + " of float32, whose scale a picture does not have; give an array of float32";
}

UnlabelledSamples read_array(const fs::path& path, const SampleFormat& format) {
  ArraySamples array = array_reader(path)(path, array_options(format), format.shape);
  check_type(!std::holds_alternative<std::vector<float>>(array.values), format, path.string());
  if (auto* floats = std::get_if<std::vector<float>>(&array.values)) fill_missing(*floats, format);
  UnlabelledSamples samples;
  std::visit([&](auto& values) { samples.values = std::move(values); }, array.values);
  for (std::size_t i = 0; i < array.count; ++i)
    samples.names.push_back(path.string() + "[" + std::to_string(i) + "]");
  return samples;
}

UnlabelledSamples read_table(const fs::path& path, const SampleFormat& format,
                             const std::function<void(SkippedFile)>& skip) {
  InputFile file(path);
  TableFeatures features = read_table_features(file, format);
  for (RefusedRow& row : features.refused)
    skip({path.string() + ":" + std::to_string(row.line), std::move(row.reason)});
  UnlabelledSamples samples;
  samples.values = std::move(features.values);
  for (const std::size_t line : features.lines)
    samples.names.push_back(path.string() + ":" + std::to_string(line));
  return samples;
}

// What files a network with such samples can be given.
std::string wanted_files(const SampleFormat& format) {
  const std::string arrays = "arrays (.npy, .npz, safetensors) of samples of " + to_string(format.shape);
  if (!format.columns.empty())
    return "a CSV or TSV table with the columns that it was trained on, or " + arrays;
  return (why_no_pictures(format).empty() ? "pictures (" + image_formats() + ") or " : "") + arrays;
}

UnlabelledSamples read_file(const fs::path& path, const SampleFormat& format,
                            const std::function<void(SkippedFile)>& skip) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw DataError(path.string() + ": no such file");
  open_data_file(path);  // says why it cannot be read
  if (array_reader(path) != nullptr) return read_array(path, format);
  if (starts_picture(path)) throw DataError(path.string() + ": " + why_no_pictures(format));
  if (!format.columns.empty()) return read_table(path, format, skip);
  throw DataError(path.string() + ": the network takes " + wanted_files(format));
}

// Pictures that follow each other, which are decoded together.
class Pictures {
 public:
  Pictures(const SampleFormat& format, unsigned threads, const std::function<void(UnlabelledSamples)>& take,
           const std::function<void(SkippedFile)>& skip)
      : take_(take), skip_(skip), sample_bytes_(element_count(format.shape)) {
    options_.grayscale = format.shape.front() == 1;
    options_.resize = ImageSize{static_cast<std::uint32_t>(format.shape.at(1)),
                                static_cast<std::uint32_t>(format.shape.at(2))};
    options_.threads = threads;
  }

  void add(const fs::path& path) {
    entries_.push_back({.path = path});
    if (entries_.size() == kPicturesAtOnce) flush();
  }

  void flush() {
    if (entries_.empty()) return;
    std::vector<std::uint8_t> pixels(entries_.size() * sample_bytes_);
    const std::vector<DecodedFile> files = decode_images(entries_, options_, *options_.resize, pixels, {});
    UnlabelledSamples samples;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!files[i].problem.empty()) {
        skip_({entries_[i].path, files[i].problem});
        continue;
      }
      // Closes the gaps that skipped files leave.
      const auto from = pixels.begin() + static_cast<std::ptrdiff_t>(i * sample_bytes_);
      std::copy_n(from, sample_bytes_,
                  pixels.begin() + static_cast<std::ptrdiff_t>(samples.names.size() * sample_bytes_));
      samples.names.push_back(entries_[i].path.string());
    }
    pixels.resize(samples.names.size() * sample_bytes_);
    samples.values = std::move(pixels);
    entries_.clear();
    if (!samples.names.empty()) take_(std::move(samples));
  }

 private:
  const std::function<void(UnlabelledSamples)>& take_;
  const std::function<void(SkippedFile)>& skip_;
  const std::size_t sample_bytes_;
  ReadOptions options_;
  std::vector<ImageEntry> entries_;
};

// The files that `path` stands for. Links to folders are not followed, so there are no circles.
std::vector<fs::path> expanded(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<fs::path> files;
  fs::recursive_directory_iterator it(path, fs::directory_options::skip_permission_denied, error), end;
  for (; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const bool hidden = it->path().filename().string().starts_with('.');
    if (hidden && it->is_directory(ignored)) it.disable_recursion_pending();
    if (!hidden && it->is_regular_file(ignored)) files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string without_path(const std::string& message, const fs::path& path) {
  const std::string start = path.string() + ": ";
  return message.starts_with(start) ? message.substr(start.size()) : message;
}

}  // namespace

void read_unlabelled(std::span<const fs::path> files, const SampleFormat& format, unsigned threads,
                     const std::function<void(UnlabelledSamples)>& take,
                     const std::function<void(SkippedFile)>& skip) {
  std::optional<Pictures> pictures;
  if (why_no_pictures(format).empty()) pictures.emplace(format, threads, take, skip);
  for (const fs::path& given : files) {
    const std::vector<fs::path> inside = expanded(given);
    if (inside.empty()) skip({given, "holds no files"});
    for (const fs::path& path : inside) {
      if (pictures && starts_picture(path)) {
        pictures->add(path);
        continue;
      }
      try {
        UnlabelledSamples samples = read_file(path, format, skip);
        if (pictures) pictures->flush();
        if (!samples.names.empty()) take(std::move(samples));
      } catch (const DataError& error) {
        if (pictures) pictures->flush();
        skip({path, without_path(error.what(), path)});
      }
    }
  }
  if (pictures) pictures->flush();
}

}  // namespace sweep
