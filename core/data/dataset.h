// Image data sets in memory: the bytes of the files, shared by all runs of a sweep.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/base/shape.h"
#include "core/data/maybe_owned_array.h"
#include "core/data/readers/data_file.h"
#include "core/data/split_method.h"

namespace sweep {

/// Input normalisation, as torchvision.transforms.Normalize: x = (byte / 255 − mean[c]) / std[c] for channel
/// c. Both are [channels], or both are empty: x = byte / 255.
struct PixelTransform {
  std::vector<float> mean;
  std::vector<float> std;  // > 0
};

/// A data set as the sweep file describes it.
struct DatasetSpec {
  std::string name{};  // "fashion-mnist", "mnist", "cifar10", or any name with a path
  /// A folder, a file, or a glob(7) pattern of files; empty: load_dataset() searches for it.
  std::filesystem::path path{};
  std::string format{};  // a name of data_formats(); empty: recognised by content
  /// Size of the validation set: a number of samples, or a fraction in [0, 1) of the training samples of the
  /// source. They are taken from the training samples, as `split` says, before `limit` applies.
  std::variant<std::size_t, double> validation = std::size_t{0};
  /// Size of the test set, likewise; 0 for a source that has one.
  std::variant<std::size_t, double> test = std::size_t{0};
  SplitMethod split = SplitMethod::kAuto;
  std::uint64_t split_seed = 0;  // of kRandom and kStratified
  /// Uses only the first `limit` samples of each of training, validation and test; 0: all. The validation
  /// samples are therefore the same ones for every size of the training set.
  std::size_t limit = 0;
  /// Image folders: [height, width] of the samples, each >= 1; none: all images have one size already.
  std::optional<std::array<std::int64_t, 2>> resize{};
  bool grayscale = false;  // image folders: one channel instead of three
  std::string label{};     // the column or array of the classes; empty: found by its usual names
  PixelTransform transform{};
  friend bool operator==(const DatasetSpec& a, const DatasetSpec& b) {
    return a.name == b.name && a.path == b.path && a.format == b.format && a.validation == b.validation &&
           a.test == b.test && a.split == b.split && a.split_seed == b.split_seed && a.limit == b.limit &&
           a.resize == b.resize && a.grayscale == b.grayscale && a.label == b.label &&
           a.transform.mean == b.transform.mean && a.transform.std == b.transform.std;
  }
};

/// Labelled images as bytes. Immutable once built; may be shared between threads.
struct ImageSet {
  Shape shape;                           // of one sample: [channels, height, width]
  MaybeOwnedArray<std::uint8_t> pixels;  // [count, channels, height, width]
  MaybeOwnedArray<std::int32_t> labels;  // [count], each in [0, classes)

  std::size_t size() const { return labels.size(); }
  /// Bytes of one sample.
  std::size_t sample_bytes() const { return element_count(shape); }
  /// The bytes of sample i, [channels, height, width]; i < size().
  std::span<const std::uint8_t> sample(std::size_t i) const {
    return std::span<const std::uint8_t>(pixels).subspan(i * sample_bytes(), sample_bytes());
  }
};

/// Samples first … first + count − 1 of a set: a training or validation part, without copying.
struct Samples {
  std::shared_ptr<const ImageSet> set;
  std::size_t first = 0;
  std::size_t count = 0;
};

struct Dataset {
  std::string name;
  Shape shape;  // of one sample
  /// [classes]; "0", "1", … if the classes have no names.
  std::vector<std::string> class_names;
  Samples train;
  Samples validation;  // count 0 if there is none
  Samples test;        // count 0 if there is none
  PixelTransform transform;
  std::vector<DataFile> files;
  std::vector<SkippedFile> skipped;  // files of the source that are not among the samples, and why
  std::vector<std::string> notes;    // for the user, one line each
};

/// Loads and validates a data set: magic numbers, sizes, label range, and the SHA-256 of well-known sets.
/// Samples have to be bytes and targets classes; samples of [features] become [1, 1, features]. If spec.path
/// is empty, searches $SWEEP_DATA/<name>, /usr/share/datasets/<name>, /usr/local/share/datasets/<name> and
/// ${XDG_CACHE_HOME:-~/.cache}/sweep/<name>, in that order. Throws DataError naming the file and what is
/// wrong with it, or every directory that was searched; ConfigError for an unknown format, an option that the
/// format does not have, a wrong transform, or a split that leaves no training set. Thread-safe.
Dataset load_dataset(const DatasetSpec& spec);

}  // namespace sweep
