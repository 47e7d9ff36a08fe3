// Image data sets in memory: bytes as the files hold them, shared by all runs of a sweep.
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
#include "core/data/elements.h"

namespace sweep {

/// x = (byte / 255 − mean[c]) / std[c] for channel c; both empty: x = byte / 255.
struct PixelTransform {
  std::vector<float> mean;
  std::vector<float> std;
};

/// What a sweep file says of its data.
struct DatasetSpec {
  std::string name{};            // "fashion-mnist", "mnist", or any name with a path
  std::filesystem::path path{};  // directory; empty: looked for, see load_dataset()
  std::string format = "idx";
  /// Samples, or a fraction in [0, 1), of the training file; taken from its end, before `limit` applies.
  std::variant<std::size_t, double> validation = std::size_t{0};
  /// Use the first so many samples of each part: training, validation and test. So runs that learn from less
  /// are validated on the same samples. 0: all.
  std::size_t limit = 0;
  PixelTransform transform{};
  friend bool operator==(const DatasetSpec& a, const DatasetSpec& b) {
    return a.name == b.name && a.path == b.path && a.format == b.format && a.validation == b.validation &&
           a.limit == b.limit && a.transform.mean == b.transform.mean && a.transform.std == b.transform.std;
  }
};

/// Samples as bytes. Immutable once built; may be shared between threads.
struct ImageSet {
  Shape shape;                    // of one sample: [channels, height, width]
  Elements<std::uint8_t> pixels;  // [count, channels, height, width]
  Elements<std::int32_t> labels;  // [count], each in [0, classes)

  std::size_t size() const { return labels.size(); }
  std::size_t sample_bytes() const { return element_count(shape); }
  std::span<const std::uint8_t> sample(std::size_t i) const {
    return std::span<const std::uint8_t>(pixels).subspan(i * sample_bytes(), sample_bytes());
  }
};

/// Samples first … first + count − 1 of a set: the training or the validation part, without copying.
struct Samples {
  std::shared_ptr<const ImageSet> set;
  std::size_t first = 0;
  std::size_t count = 0;
};

/// One file that was read, for the provenance of a run.
struct DataFile {
  std::filesystem::path path;
  std::string sha256;  // of the decompressed content, 64 hexadecimal digits
};

struct Dataset {
  std::string name;
  Shape shape;  // of one sample
  /// As many as there are classes; "0", "1", … where the set has no names.
  std::vector<std::string> class_names;
  Samples train;
  Samples validation;  // the end of the training file; count 0 if there is none
  Samples test;        // count 0 if there is none
  PixelTransform transform;
  std::vector<DataFile> files;
};

/// Loads and checks a data set: magic numbers, sizes, label range, and the SHA-256 of files whose content is
/// known. A set is looked for in spec.path; without one in $SWEEP_DATA/<name>, /usr/share/datasets/<name>,
/// /usr/local/share/datasets/<name> and ${XDG_CACHE_HOME:-~/.cache}/sweep/<name>, in that order.
/// Throws DataError naming the file and what is wrong with it, or every place that was looked in; ConfigError
/// for an unknown format, or a validation part that leaves nothing to train on.
Dataset load_dataset(const DatasetSpec& spec);

}  // namespace sweep
