// The files of an image folder, and how they are decoded together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/shape.h"
#include "core/data/readers/named_arrays.h"

namespace sweep {

/// What changes when a file is written. Programs can set the time of modification back, but not that of the
/// last change of the file's status, which every write sets.
struct FileStamp {
  std::uint64_t bytes = 0;
  std::int64_t modified = 0, changed = 0;  // nanoseconds since 1970
};

struct ImageEntry {
  std::filesystem::path path;
  std::int32_t class_index = 0;
  FileStamp stamp{};  // when it was listed
};

struct ImageFolder {
  std::vector<std::string> class_names;               // sorted names of the folders
  std::map<DataPart, std::vector<ImageEntry>> parts;  // each in a fixed order: by class, then by path
  std::vector<SkippedFile> skipped;  // pipes, dangling links, folders that cannot be read, …
};

/// Lists the files below `path`, which holds either a folder per class, or nothing but folders called
/// "train", "validation" ("val", "valid") and "test" with a folder per class each. Hidden files are ignored;
/// links are followed, each folder is read once per class. Throws DataError if there are less than two
/// classes, a class without files, or a class in another part that the training part has not.
ImageFolder scan_image_folder(const std::filesystem::path& path);

/// The name of a file or folder below `root`, as scan_image_folder(root) lists it, relative to that.
std::string relative_name(const std::filesystem::path& root, const std::filesystem::path& path);

/// Calls work(0) … work(count − 1), each once, on `threads` threads (0: one per core that this process may
/// use), roughly in order, while the calling thread waits. The first exception ends the loop and is thrown
/// again here, after the threads have ended.
void parallel_for(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

/// The outcome of decoding one image file.
struct DecodedFile {
  std::string sha256;   // of the file; empty: it could not be decoded
  std::string problem;  // that it has then
  bool unread = false;  // it could not be read, which may pass
};

/// Decodes `entries` to `out`, one after the other, of `shape` each, [channels, height, width], on `threads`
/// threads (0: all cores). A file that is damaged takes no place. Throws DataError for one of another size,
/// unless all are to be resized. Memory other than `out`: a file and an image for each thread. `meanwhile`,
/// unless empty, is called once by one of the threads.
std::vector<DecodedFile> decode_images(std::span<const ImageEntry> entries, const Shape& shape, bool resize,
                                       unsigned threads, std::span<std::uint8_t> out,
                                       const std::function<void()>& meanwhile = {});

}  // namespace sweep
