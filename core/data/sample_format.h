// What the samples of a data set look like: all that is needed to make others of the same kind for a network
// that was trained on it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/shape.h"
#include "core/data/dataset.h"

namespace sweep {

struct SampleFormat {
  Shape shape;         // of one sample
  bool bytes = false;  // samples are uint8, of which a network gets byte / 255; else float32
  std::vector<std::string> class_names;               // [classes]; empty if the targets are numbers
  std::vector<std::string> target_names;              // of the numbers; empty if the targets are classes
  std::vector<FeatureColumn> columns;                 // of a table; else empty
  TextEncoding encoding = TextEncoding::kUtf8;        // of the table
  UnknownCategory unknown = UnknownCategory::kError;  // likewise
  std::vector<float> fill_values;  // per channel, for missing values; empty: none may be missing
  InputTransform transform;
  friend bool operator==(const SampleFormat&, const SampleFormat&) = default;
};

SampleFormat sample_format(const Dataset& dataset);

nlohmann::ordered_json to_json(const SampleFormat& format);
/// The inverse. Throws DataError, which `where` begins, if `json` is no such description.
SampleFormat sample_format_from_json(const nlohmann::ordered_json& json, std::string_view where);

}  // namespace sweep
