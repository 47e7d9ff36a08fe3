#include "core/data/readers/idx_dataset.h"

#include <algorithm>
#include <future>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/data/readers/idx.h"

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

// One part, and its files: the images first, then the labels.
struct IdxPart {
  RawPart part;
  Shape shape;
  std::vector<DataFile> files;
};

IdxPart read_part(const fs::path& directory, const FileNames& names) {
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
  IdxPart result;
  result.shape = {1, images.extents[1], images.extents[2]};
  result.part.count = labels.values.size();
  result.part.samples = std::move(images.values);
  result.part.classes.assign(labels.values.begin(), labels.values.end());
  result.files = {{images_path, images.sha256}, {labels_path, labels.sha256}};
  return result;
}

void check_test_part(const IdxPart& train, const IdxPart& test, std::int32_t largest_label) {
  const std::vector<std::int32_t>& labels = test.part.classes;
  const auto wrong =
      std::find_if(labels.begin(), labels.end(), [&](std::int32_t label) { return label > largest_label; });
  if (wrong != labels.end()) {
    throw DataError(test.files.back().path.string() + ": label " + std::to_string(*wrong) + " of sample " +
                    std::to_string(wrong - labels.begin()) +
                    " (from 0) is out of range: the training labels are 0 to " +
                    std::to_string(largest_label));
  }
  if (test.shape != train.shape) {
    throw DataError(test.files.front().path.string() + ": its images are " + to_string(test.shape) +
                    ", those for training " + to_string(train.shape));
  }
}

}  // namespace

bool is_idx_dataset(const fs::path& path) { return !find_file(path, kTrain.images).empty(); }

RawData read_idx_dataset(std::span<const fs::path> paths, const ReadOptions&) {
  if (paths.size() != 1) throw DataError("idx: expected one folder, found " + std::to_string(paths.size()));
  const fs::path& directory = paths.front();
  std::error_code error;
  if (!fs::is_directory(directory, error)) throw DataError(directory.string() + ": is not a folder");
  const bool has_test =
      !find_file(directory, kTest.images).empty() || !find_file(directory, kTest.labels).empty();
  // The test part is inflated beside the training part. With the default launch policy, a machine that has
  // no thread to give does it here.
  std::future<IdxPart> test_part;
  if (has_test) test_part = std::async([&] { return read_part(directory, kTest); });
  IdxPart train = read_part(directory, kTrain);
  const std::int32_t largest_label = *std::max_element(train.part.classes.begin(), train.part.classes.end());

  RawData data;
  data.shape = train.shape;
  for (std::int32_t c = 0; c <= largest_label; ++c) data.class_names.push_back(std::to_string(c));
  data.files = train.files;
  if (has_test) {
    IdxPart test = test_part.get();
    check_test_part(train, test, largest_label);
    data.files.insert(data.files.end(), test.files.begin(), test.files.end());
    data.test = std::move(test.part);
  }
  data.train = std::move(train.part);
  check_raw_data(data, directory.string());
  return data;
}

}  // namespace sweep
