// The result of every reader: samples and targets in memory, and where they came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/maybe_owned_array.h"
#include "core/base/shape.h"
#include "core/data/readers/data_file.h"
#include "core/data/readers/table_options.h"

namespace sweep {

class MappedFile;

/// All samples of one part, row-major: [count, *RawData::shape]. Bytes stay bytes, so that a device can keep
/// them as such; everything else is converted to float32. The last kind are bytes of a file that is mapped.
using SampleValues =
    std::variant<std::vector<std::uint8_t>, std::vector<float>, MaybeOwnedArray<std::uint8_t>>;

/// The training, validation or test samples. Exactly one of `classes` and `values` is used, the same in
/// all parts.
struct RawPart {
  std::size_t count = 0;
  SampleValues samples;
  std::vector<std::int32_t> classes;  // [count]: indices into RawData::class_names
  std::vector<float> values;          // [count, RawData::value_names.size()]: regression targets, all finite
};

struct RawData {
  Shape shape;                             // of one sample: [channels, height, width] or [features]
  std::vector<std::string> feature_names;  // one per feature of a table; empty for all other formats
  std::vector<bool> is_indicator;          // likewise: whether the feature says 0 or 1 of one category
  std::vector<FeatureColumn> columns;      // what these features were made of
  std::vector<std::string> class_names;    // empty: the targets are values
  std::vector<std::string> value_names;    // empty: the targets are classes
  RawPart train;                           // all samples, if the source does not divide them
  std::optional<RawPart> validation;       // where folders, files or a split column say so
  std::optional<RawPart> test;
  std::shared_ptr<const MappedFile> mapping;  // where samples of the last kind lie, else null
  std::vector<DataFile> files;
  std::vector<SkippedFile> skipped;  // to be shown: nothing is passed over silently
  std::vector<std::string> notes;    // for the user, one line each: a constant column, for example
};

/// Checks what the comments above promise: counts, shapes, one type of samples, classes in range, finite
/// values. NaN among the samples is allowed; see fill_missing(). Throws DataError; `name` stands for the
/// source in messages.
void check_raw_data(const RawData& data, const std::string& name);

/// Mean and deviation of channels: of each feature for samples of [features], of the first extent otherwise.
struct ChannelStatistics {
  std::vector<double> mean, deviation;  // [channels]; the deviation divides by the count
};

/// The statistics of samples [0, count) of `part`, of floats or of byte / 255. NaN, a missing value, is left
/// out; a channel without any value has mean and deviation 0. Those of bytes are counted first, and so do not
/// depend on their order.
ChannelStatistics channel_statistics(const RawPart& part, const Shape& shape, std::size_t count);
/// The same of the samples `rows` of `part`, which are bytes.
ChannelStatistics channel_statistics(const RawPart& part, const Shape& shape,
                                     std::vector<std::uint32_t> rows);

/// Replaces each NaN among the samples of `part`, floats, by the mean of its channel. `means` must come from
/// the samples that a network is trained on, so that nothing of the others reaches it.
void fill_missing(RawPart& part, const Shape& shape, const std::vector<double>& means);

}  // namespace sweep
