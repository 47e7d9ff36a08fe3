#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "core/base/utf8.h"
#include "core/data/readers/image_folder/image_folder.h"
#include "core/data/readers/images/image_file.h"
#include "core/data/readers/readers.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// Recognition looks at so many files of each class.
constexpr int kMaxProbes = 16;

std::vector<std::string> folders_in(const fs::path& directory) {
  std::string problem;
  std::vector<std::string> names = visible_names(directory, &problem);
  if (!problem.empty()) refuse(directory, "{}", problem);
  std::erase_if(names, [&](const std::string& name) {
    std::error_code error;
    return !fs::is_directory(directory / name, error);
  });
  return names;
}

// True if the folders in `path` are parts of a data set, not classes. Throws DataError if some are.
bool is_divided(const fs::path& path, const std::vector<std::string>& folders) {
  const auto train = std::ranges::find(folders, kTrainPart, part_called);
  if (train == folders.end()) return false;
  const auto found = std::ranges::find(folders, std::optional<DataPart>(), part_called);
  if (found == folders.end()) return true;
  const auto other = std::ranges::find_if(
      folders, [&](const std::string& name) { return part_called(name) && name != *train; });
  if (other == folders.end()) return false;  // "train" is a class
  refuse(
      path,
      "the folders \"{}\" and \"{}\" are parts of a data set, but \"{}\" is none (train, validation and test "
      "are): move it elsewhere, or rename those if they are classes",
      *train, *other, *found);
}

const char* kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "is a pipe, not a file";
  if (S_ISSOCK(mode)) return "is a socket, not a file";
  return "is a device, not a file";
}

FileStamp stamp_of(const struct stat& info) {
  const auto nanoseconds = [](const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return {static_cast<std::uint64_t>(info.st_size), nanoseconds(info.st_mtim), nanoseconds(info.st_ctim)};
}

class ClassScan {
 public:
  ClassScan(std::int32_t class_index, std::vector<ImageEntry>& entries, std::vector<SkippedFile>& skipped)
      : class_index_(class_index), entries_(entries), skipped_(skipped) {}

  // Lists the folder of a class.
  void scan_class(const fs::path& directory) {
    // A link to the folder itself or to one above it leads to pictures of other classes, or to the same
    // again.
    std::error_code error;
    for (fs::path above = fs::canonical(directory, error);; above = above.parent_path()) {
      struct stat info {};
      if (::stat(above.c_str(), &info) == 0) seen_.emplace(info.st_dev, info.st_ino);
      if (!above.has_relative_path()) break;
    }
    scan(directory);
  }

 private:
  void scan(const fs::path& directory) {
    std::string problem;
    const std::vector<std::string> names = visible_names(directory, &problem);
    if (!problem.empty()) skipped_.push_back({directory, problem});
    for (const std::string& name : names) add(directory / name);
  }

  void add(const fs::path& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
      skipped_.push_back({path, std::string("cannot be read: ") + std::strerror(errno)});
    } else if (S_ISREG(info.st_mode)) {
      entries_.push_back({path, class_index_, stamp_of(info)});
    } else if (!S_ISDIR(info.st_mode)) {
      skipped_.push_back({path, kind_of(info.st_mode)});
    } else if (!seen_.emplace(info.st_dev, info.st_ino).second) {
      skipped_.push_back({path, "links to a folder that has been read already"});
    } else {
      scan(path);
    }
  }

  const std::int32_t class_index_;
  std::vector<ImageEntry>& entries_;
  std::vector<SkippedFile>& skipped_;
  std::set<std::pair<dev_t, ino_t>> seen_;
};

// Lists `path`, with a folder per class. `class_names` empty: sets it to the names that are found.
std::vector<ImageEntry> scan_part(const fs::path& path, std::vector<std::string>& class_names,
                                  std::vector<SkippedFile>& skipped) {
  const std::vector<std::string> folders = folders_in(path);
  const bool sets_classes = class_names.empty();
  if (sets_classes) class_names = folders;
  if (folders.empty()) refuse(path, "has no folders; expected one per class");
  if (class_names.size() < 2) {
    refuse(path, "has images of one class only, \"{}\"; expected a folder per class, at least two",
           class_names.front());
  }
  std::vector<ImageEntry> entries;
  for (const std::string& folder : folders) {
    const auto found = std::find(class_names.begin(), class_names.end(), folder);
    if (found == class_names.end())
      refuse(path / folder, "there is no such class in the training images{}",
             did_you_mean(nearest_name(folder, class_names)));
    if (!is_utf8(folder)) refuse(path / folder, "the folder's name is not UTF-8");
    const std::size_t before = entries.size();
    const std::size_t skipped_before = skipped.size();
    ClassScan(static_cast<std::int32_t>(found - class_names.begin()), entries, skipped)
        .scan_class(path / folder);
    if (sets_classes && entries.size() == before) {
      const bool has_reason = skipped.size() > skipped_before;
      refuse(path / folder, "holds no images{}",
             has_reason ? "; " + skipped.back().path.string() + " " + skipped.back().reason : "");
    }
  }
  if (entries.empty()) refuse(path, "holds no images");
  for (const std::string& name : visible_names(path)) {
    if (!std::binary_search(folders.begin(), folders.end(), name)) {
      skipped.push_back({path / name, "is not in the folder of a class"});
    }
  }
  return entries;
}

bool holds_images(const fs::path& path) {
  for (const std::string& folder : visible_names(path)) {
    int probes = 0;
    for (const std::string& name : visible_names(path / folder)) {
      if (++probes > kMaxProbes) break;
      if (starts_image(first_bytes(path / folder / name, 32))) return true;
    }
  }
  return false;
}

}  // namespace

bool is_image_folder(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  if (holds_images(path)) return true;
  const std::vector<std::string> names = visible_names(path);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return part_called(name) == kTrainPart && holds_images(path / name);
  });
}

ImageFolder scan_image_folder(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) refuse(path, "is not a folder");
  const std::vector<std::string> folders = folders_in(path);
  ImageFolder folder;
  const auto add_part = [&](DataPart part, const fs::path& directory) {
    if (folder.parts.contains(part))
      refuse(directory, "is for the {} images, as \"{}\" is; want only one of these folders",
             kPartNames[part], *std::ranges::find(folders, part, part_called));
    folder.parts[part] = scan_part(directory, folder.class_names, folder.skipped);
  };
  if (folders.empty() || !is_divided(path, folders)) {
    add_part(kTrainPart, path);
    return folder;
  }
  // The training part comes first: it says which classes there are.
  for (const DataPart part : {kTrainPart, kValidationPart, kTestPart}) {
    for (const std::string& name : folders)
      if (part_called(name) == part) add_part(part, path / name);
  }
  return folder;
}

std::string relative_name(const fs::path& root, const fs::path& path) {
  std::string_view name(path.native());
  name.remove_prefix(root.native().size());
  name.remove_prefix(std::min(name.find_first_not_of('/'), name.size()));
  return std::string(name);
}

}  // namespace sweep
