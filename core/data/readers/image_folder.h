// Images in a folder per class, as torchvision's ImageFolder reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/readers/named_arrays.h"
#include "core/data/readers/read_options.h"

namespace sweep {

/// What changes when a file is written. Programs can set the time of modification back, but not that of the
/// last change of the file's status, which every write sets.
struct FileStamp {
  std::uint64_t bytes = 0;
  std::int64_t modified = 0, changed = 0;  // nanoseconds since 1970
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

struct ImageEntry {
  std::filesystem::path path;
  std::int32_t class_index = 0;
  FileStamp stamp{};  // when it was listed
};

/// The files of an image folder, in a fixed order: by class, then by path.
struct ImageFolder {
  std::vector<std::string> class_names;  // sorted names of the folders
  std::vector<ImageEntry> train;
  std::optional<std::vector<ImageEntry>> validation;
  std::optional<std::vector<ImageEntry>> test;
  std::vector<SkippedFile> skipped;  // pipes, dangling links, folders that cannot be read, …
};

/// True if `path` is a folder with images in folders.
bool is_image_folder(const std::filesystem::path& path);

/// Lists the files below `path`, which holds either a folder per class, or nothing but folders called
/// "train", "validation" ("val", "valid") and "test" with a folder per class each. Hidden files are ignored;
/// links are followed, each folder is read once per class. Throws DataError if there are less than two
/// classes, a class without files, or a class in another part that the training part has not.
ImageFolder scan_image_folder(const std::filesystem::path& path);

/// The outcome of decoding one image file.
struct DecodedFile {
  std::string sha256;       // of the file
  std::string problem;      // empty: decoded
  bool other_size = false;  // the problem is nothing but its size
};

/// The name of a file or folder below `root`, as scan_image_folder(root) lists it, relative to that.
std::string relative_name(const std::filesystem::path& root, const std::filesystem::path& path);

/// Decodes entries[i] to `out` at i * channels * height * width, on options.threads threads. A file of
/// another size (only without options.resize) or that is damaged leaves its place as it was, and has a
/// problem. Memory beside `out`: a file and a few rows for each thread. `beside`, unless empty, is called
/// once by one of the threads.
std::vector<DecodedFile> decode_images(std::span<const ImageEntry> entries, const ReadOptions& options,
                                       ImageSize size, std::span<std::uint8_t> out,
                                       const std::function<void()>& beside);

/// Where decoded samples go, part after part: training, validation, test.
class SampleStore {
 public:
  virtual ~SampleStore() = default;
  /// The array `name` of at most `max_bytes` begins.
  virtual void begin(const std::string& name, std::size_t max_bytes) = 0;
  /// Its next samples. Called by one thread at a time; what it throws ends the decoding.
  virtual void append(std::span<const std::uint8_t> bytes) = 0;
  /// The array is complete. Returns its values, or something empty if the caller gets them otherwise.
  virtual ArrayValues end(const Shape& shape) = 0;
};

/// Reads an image folder whole. Samples are bytes, [3, height, width] or [1, height, width] with
/// options.grayscale. Files that are no images, damaged or too large are skipped and listed. Without
/// options.resize all images must have the size of the first, or DataError is thrown. `files` holds the
/// folder alone, with the SHA-256 of lines "DIGEST  PATH\n", one per image that was used, as sha256sum
/// prints them, by part, class and path. Options used: resize, grayscale and those for all formats.
/// Throws DataError.
DataArrays read_image_folder(std::span<const std::filesystem::path> paths, const ReadOptions& options);

/// What read_image_folder() gives for what scan_image_folder(root) has listed. Samples are in memory.
DataArrays decode_image_folder(ImageFolder folder, const std::filesystem::path& root,
                               const ReadOptions& options);

/// The bytes that the samples of `folder` need if all of them can be decoded, with samples of `size`.
std::uint64_t decoded_bytes(const ImageFolder& folder, const ReadOptions& options, ImageSize size);
/// The size of all samples: options.resize, or that of the first image that can be decoded. Throws DataError
/// if there is none.
ImageSize common_size(const ImageFolder& folder, const ReadOptions& options, const std::string& name);

/// Decodes `folder` to `store`, in pieces of 32 MiB: while one is decoded by all threads, one of them stores
/// the last one. The memory needed does not depend on the number of images.
DataArrays decode_image_folder(ImageFolder folder, const std::filesystem::path& root,
                               const ReadOptions& options, ImageSize size, SampleStore& store);

}  // namespace sweep
