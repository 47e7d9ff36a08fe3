#include "core/data/unlabelled_samples.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/channel_statistics.h"
#include "core/data/data_from_arrays.h"
#include "core/data/readers/image_folder/image_folder.h"
#include "core/data/readers/images/image_file.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/readers.h"
#include "core/data/sample_format.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPicturesAtOnce = 512;

// Why the network cannot take pictures; "" if it can.
std::string why_no_pictures(const SampleFormat& format) {
  const std::string samples = "the network was trained on samples of " + to_string(format.shape);
  if (format.shape.size() != 3) return samples + ", not on pictures";
  const std::int64_t channels = format.shape.front();
  if (channels != 1 && channels != 3) {
    return fmt::format(
        "{}, but a picture has 1 or 3 channels, not {}; give an array (.npy, .npz, safetensors)", samples,
        channels);
  }
  if (format.bytes) return "";
  return samples + " of float32, whose scale a picture does not have; give an array of float32";
}

// Takes the samples of a file in the format `row`.
void read_samples(const fs::path& path, const DataFormat& row, const SampleFormat& format,
                  const TakeSamples& take, const std::function<void(SkippedFile)>& skip) {
  ReadOptions options;
  options.missing = format.fill_values.empty() ? MissingValues::kError : MissingValues::kMean;
  options.columns = format.columns;
  options.unlabelled = true;
  options.encoding.reset();
  options.unknown = format.unknown;
  DataArrays data = row.read(std::span(&path, 1), options);
  const bool all_refused = data.arrays.empty() && !data.skipped.empty();
  for (SkippedFile& refused : data.skipped) skip(std::move(refused));
  if (all_refused) return;
  SampleArray samples =
      samples_from_arrays(std::move(data.arrays), options.missing, format.shape, path.string());
  check_trained_type(samples.index() == 0, format, path.string());
  if (auto* floats = std::get_if<1>(&samples); floats != nullptr && !format.fill_values.empty())
    fill_missing(floats->edit(), format.shape, format.fill_values);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < value_count(samples) / element_count(format.shape); ++i) {
    names.push_back(data.lines.empty() ? fmt::format("{}[{}]", path.string(), i)
                                       : fmt::format("{}:{}", path.string(), data.lines[i]));
  }
  take(std::move(samples), std::move(names));
}

// What files a network with such samples can be given.
std::string wanted_files(const SampleFormat& format) {
  const std::string arrays = "arrays (.npy, .npz, safetensors) of samples of " + to_string(format.shape);
  if (!format.columns.empty())
    return "a CSV or TSV table with the columns that it was trained on, or " + arrays;
  return (why_no_pictures(format).empty() ? "pictures (" + image_formats() + ") or " : "") + arrays;
}

void read_file(const fs::path& path, const SampleFormat& format, const TakeSamples& take,
               const std::function<void(SkippedFile)>& skip) {
  std::error_code error;
  if (fs::status(path, error).type() == fs::file_type::not_found) refuse(path, "no such file");
  open_regular_file(path);  // says why it cannot be read
  const DataFormat* row = recognise_format(path);
  const bool is_array = row != nullptr && !row->is_table;
  if (!is_array && starts_image(first_bytes(path, 32))) refuse(path, "{}", why_no_pictures(format));
  if (!is_array && !format.columns.empty()) row = &require_format("csv");
  if (is_array || !format.columns.empty()) return read_samples(path, *row, format, take, skip);
  if (fs::file_size(path, error) == 0 && !error) refuse(path, "is empty");
  refuse(path, "the network takes {}", wanted_files(format));
}

// Decodes `pictures`, which follow each other, together, and leaves none there.
void take_pictures(std::vector<ImageEntry>& pictures, const SampleFormat& format, unsigned threads,
                   const TakeSamples& take, const std::function<void(SkippedFile)>& skip) {
  if (pictures.empty()) return;
  const std::size_t sample_bytes = element_count(format.shape);
  std::vector<std::uint8_t> pixels(pictures.size() * sample_bytes);
  const std::vector<DecodedFile> files = decode_images(pictures, format.shape, true, threads, pixels);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    if (!files[i].sha256.empty())
      names.push_back(pictures[i].path.string());
    else
      skip({pictures[i].path, files[i].problem});
  }
  pixels.resize(names.size() * sample_bytes);
  pictures.clear();
  if (!names.empty()) take(std::move(pixels), std::move(names));
}

// Adds the files in `folder` to `files`, sorted by their paths. Links to folders are not followed, so there
// are no circles.
void add_files(const fs::path& folder, std::vector<fs::path>& files,
               const std::function<void(SkippedFile)>& skip) {
  std::string problem;
  for (const std::string& name : visible_names(folder, &problem)) {
    const fs::path path = folder / name;
    std::error_code ignored;
    if (fs::is_directory(fs::symlink_status(path, ignored)))
      add_files(path, files, skip);
    else if (!fs::exists(path, ignored) || fs::is_regular_file(path, ignored))
      files.push_back(path);  // A link to nothing is named when it is read.
  }
  if (!problem.empty()) skip({folder, problem});
}

// The files that `path` stands for.
std::vector<fs::path> expanded(const fs::path& path, const std::function<void(SkippedFile)>& skip) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<fs::path> files;
  add_files(path, files, skip);
  return files;
}

}  // namespace

void read_unlabelled(std::span<const fs::path> files, const SampleFormat& format, unsigned threads,
                     const TakeSamples& take, const std::function<void(SkippedFile)>& skip) {
  const bool takes_pictures = why_no_pictures(format).empty();
  std::vector<ImageEntry> pictures;
  const auto flush = [&] { take_pictures(pictures, format, threads, take, skip); };
  for (const fs::path& given : files) {
    const std::vector<fs::path> inside = expanded(given, skip);
    if (inside.empty()) skip({given, "holds no files"});
    for (const fs::path& path : inside) {
      if (takes_pictures && starts_image(first_bytes(path, 32))) {
        pictures.push_back({.path = path});
        if (pictures.size() == kPicturesAtOnce) flush();
        continue;
      }
      flush();
      try {
        read_file(path, format, take, skip);
      } catch (const DataError& error) {
        skip({path, without_path(error.what(), path)});
      }
    }
  }
  flush();
}

}  // namespace sweep
