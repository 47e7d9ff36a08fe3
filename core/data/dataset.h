// Image data sets in memory: the bytes of the files, shared by all runs of a sweep.
#pragma once

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

namespace sweep {

/// Input normalisation, as torchvision.transforms.Normalize: x = (byte / 255 − mean[c]) / std[c] for channel
/// c. Both are [channels], or both are empty: x = byte / 255.
struct PixelTransform {
  std::vector<float> mean;
  std::vector<float> std;  // > 0
};

/// A data set as the sweep file describes it.
struct DatasetSpec {
  std::string name{};            // "fashion-mnist", "mnist", or any name with a path
  std::filesystem::path path{};  // directory; empty: load_dataset() searches for it
  std::string format = "idx";
  /// Size of the validation set: a number of samples, or a fraction in [0, 1) of the training file. It is
  /// taken from the end of the training file, before `limit` applies.
  std::variant<std::size_t, double> validation = std::size_t{0};
  /// Uses only the first `limit` samples of each of training, validation and test; 0: all. The validation
  /// samples are therefore the same ones for every size of the training set.
  std::size_t limit = 0;
  PixelTransform transform{};
  friend bool operator==(const DatasetSpec& a, const DatasetSpec& b) {
    return a.name == b.name && a.path == b.path && a.format == b.format && a.validation == b.validation &&
           a.limit == b.limit && a.transform.mean == b.transform.mean && a.transform.std == b.transform.std;
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

/// One file that was read; recorded with a run.
struct DataFile {
  std::filesystem::path path;
  std::string sha256;  // of the decompressed content, 64 hexadecimal digits
};

struct Dataset {
  std::string name;
  Shape shape;  // of one sample
  /// [classes]; "0", "1", … if the classes have no names.
  std::vector<std::string> class_names;
  Samples train;
  Samples validation;  // the end of the training file; count 0 if there is none
  Samples test;        // count 0 if there is none
  PixelTransform transform;
  std::vector<DataFile> files;
};

/// Loads and validates a data set: magic numbers, sizes, label range, and the SHA-256 of well-known sets. If
/// spec.path is empty, searches $SWEEP_DATA/<name>, /usr/share/datasets/<name>,
/// /usr/local/share/datasets/<name> and ${XDG_CACHE_HOME:-~/.cache}/sweep/<name>, in that order. Throws
/// DataError naming the file and what is wrong with it, or every directory that was searched; ConfigError for
/// an unknown format, a wrong transform, or a validation part that leaves no training set. Thread-safe.
Dataset load_dataset(const DatasetSpec& spec);

}  // namespace sweep
