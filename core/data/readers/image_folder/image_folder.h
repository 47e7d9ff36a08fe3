// The files of an image folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

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

struct ImagePart {
  std::string name;                 // "train", "validation" or "test"
  std::vector<ImageEntry> entries;  // in a fixed order: by class, then by path
};

struct ImageFolder {
  std::vector<std::string> class_names;  // sorted names of the folders
  std::vector<ImagePart> parts;          // that for training first
  std::vector<SkippedFile> skipped;      // pipes, dangling links, folders that cannot be read, …
};

/// Lists the files below `path`, which holds either a folder per class, or nothing but folders called
/// "train", "validation" ("val", "valid") and "test" with a folder per class each. Hidden files are ignored;
/// links are followed, each folder is read once per class. Throws DataError if there are less than two
/// classes, a class without files, or a class in another part that the training part has not.
ImageFolder scan_image_folder(const std::filesystem::path& path);

/// The name of a file or folder below `root`, as scan_image_folder(root) lists it, relative to that.
std::string relative_name(const std::filesystem::path& root, const std::filesystem::path& path);

}  // namespace sweep
