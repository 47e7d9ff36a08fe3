#include "core/data/idx_dataset.h"

#include <utility>

#include "core/base/error.h"
#include "core/data/idx.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

struct FileNames {
  const char* images;  // without ".gz"
  const char* labels;
};
constexpr FileNames kTrain = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"};
constexpr FileNames kTest = {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

// Returns the file of that name in `directory`, plain or compressed, or an empty path.
fs::path find_file(const fs::path& directory, const std::string& name) {
  std::string dotted = name;  // Some copies on the web are called train-images.idx3-ubyte.
  dotted.replace(dotted.rfind("-idx"), 1, ".");
  for (const std::string& base : {name, dotted}) {
    for (const char* extension : {"", ".gz"}) {
      std::error_code error;
      fs::path path = directory / (base + extension);
      if (fs::exists(path, error)) return path;
    }
  }
  return {};
}

std::string missing_reason(const fs::path& directory) {
  std::error_code error;
  if (!fs::exists(directory, error)) return "no such directory";
  if (!fs::is_directory(directory, error)) return "not a directory";
  if (find_file(directory, kTrain.images).empty())
    return std::string("no ") + kTrain.images + " or " + kTrain.images + ".gz in it";
  return "";
}

bool has_test(const fs::path& directory) {
  return !find_file(directory, kTest.images).empty() || !find_file(directory, kTest.labels).empty();
}

SplitData read(const fs::path& directory, Split split) {
  const FileNames& names = split == Split::kTrain ? kTrain : kTest;
  const fs::path images_path = find_file(directory, names.images);
  const fs::path labels_path = find_file(directory, names.labels);
  for (const auto& [path, name] :
       {std::pair(images_path, names.images), std::pair(labels_path, names.labels)}) {
    if (path.empty()) throw DataError(directory.string() + ": has no " + name + " or " + name + ".gz");
  }
  // The small file first, so that mistakes show at once.
  const IdxFile labels = read_idx(labels_path, 1);
  IdxFile images = read_idx(images_path, 3);
  if (images.extents[0] != labels.extents[0]) {
    throw DataError(images_path.string() + ": holds " + std::to_string(images.extents[0]) + " images, but " +
                    labels_path.string() + " holds " + std::to_string(labels.extents[0]) + " labels");
  }
  auto set = std::make_shared<ImageSet>();
  set->shape = {1, images.extents[1], images.extents[2]};
  set->pixels = std::move(images.values);
  set->labels = std::vector<std::int32_t>(labels.values.begin(), labels.values.end());
  return {std::move(set), {{images_path, images.sha256}, {labels_path, labels.sha256}}};
}

}  // namespace

DataFormat idx_format() { return {"idx", missing_reason, has_test, read}; }

}  // namespace sweep
