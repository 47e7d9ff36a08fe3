#include "core/data/sample_format.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/readers/input_file.h"
#include "core/json/json_text.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// More features than this are a damaged file rather than a sample.
constexpr std::size_t kMaxValues = std::size_t{1} << 31;

void check(const SampleFormat& format) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw DataError(what);
  };
  require(format.shape.size() == 1 || format.shape.size() == 3,
          "its shape is neither of images nor features");
  std::size_t values = 1;
  for (const std::int64_t extent : format.shape) {
    require(extent >= 1 && static_cast<std::size_t>(extent) <= kMaxValues / values, "its shape is no size");
    values *= static_cast<std::size_t>(extent);
  }
  require(format.class_names.empty() != format.target_names.empty(), "it has neither classes nor targets");
  const auto channels = static_cast<std::size_t>(format.shape.front());
  check_transform(format.transform, format.shape);
  require(format.fill_values.empty() || format.fill_values.size() == channels,
          "its fill values are for another number of channels");
  require(std::ranges::all_of(format.fill_values, [](float value) { return std::isfinite(value); }),
          "its fill values are not finite numbers");
  if (format.columns.empty()) return;
  std::size_t features = 0;
  for (const FeatureColumn& column : format.columns) features += column.features();
  require(format.shape.size() == 1 && features == channels, "its columns make other features");
}

SampleFormat from_json(const Json& json) {
  SampleFormat format;
  for (const Json& extent : json.at("shape")) {
    if (!extent.is_number_integer()) throw DataError("its shape is no size");
    format.shape.push_back(extent.get<std::int64_t>());
  }
  format.bytes = json.at("type").get<std::string>() == "uint8";
  const auto texts = [&](const char* key) { return json.value(key, std::vector<std::string>()); };
  format.class_names = texts("classes");
  format.target_names = texts("targets");
  for (const Json& column : json.value("columns", Json::array())) {
    FeatureColumn& added = format.columns.emplace_back();
    added.name = column.at("name").get<std::string>();
    added.categories = column.value("categories", std::vector<std::string>());
    added.one_hot = !added.categories.empty() && column.value("one_hot", false);
    added.decimal_comma = column.value("decimal", std::string(".")) == ",";
  }
  if (json.value("unknown", std::string()) == "zeros") format.unknown = UnknownCategory::kZeros;
  format.fill_values = json.value("missing", std::vector<float>());
  if (json.contains("normalize")) {
    format.transform = {json["normalize"].at("mean").get<std::vector<float>>(),
                        json["normalize"].at("std").get<std::vector<float>>()};
  }
  check(format);
  return format;
}

}  // namespace

Json to_json(const SampleFormat& format) {
  Json json = {{"shape", format.shape}, {"type", format.bytes ? "uint8" : "float32"}};
  if (!format.class_names.empty()) json["classes"] = format.class_names;
  if (!format.target_names.empty()) json["targets"] = format.target_names;
  for (const FeatureColumn& column : format.columns) {
    Json entry = {{"name", column.name}};
    if (!column.categories.empty()) {
      entry["categories"] = column.categories;
      entry["one_hot"] = column.one_hot;
    }
    if (column.decimal_comma) entry["decimal"] = ",";
    json["columns"].push_back(std::move(entry));
  }
  if (format.unknown == UnknownCategory::kZeros) json["unknown"] = "zeros";
  if (!format.fill_values.empty()) json["missing"] = format.fill_values;
  if (format.transform != InputTransform{})
    json["normalize"] = {{"mean", format.transform.mean}, {"std", format.transform.std}};
  return json;
}

SampleFormat sample_format_from_json(const Json& json, std::string_view where) {
  try {
    return from_json(json);
  } catch (const nlohmann::json::exception& error) {
    refuse(where, "not a description of samples: {}", json_reason(error));
  } catch (const Error& error) {
    refuse(where, "not a description of samples: {}", error.what());
  }
}

void check_transform(const InputTransform& transform, const Shape& shape) {
  const auto channels = static_cast<std::size_t>(shape.front());
  const std::string unit = shape.size() == 1 ? "feature" : "channel";
  if (transform.mean.size() != transform.std.size() ||
      (!transform.mean.empty() && transform.mean.size() != channels)) {
    throw ConfigError(fmt::format(
        "normalize has {} means and {} standard deviations, but the {} have {}: give one of each per {}",
        transform.mean.size(), transform.std.size(), shape.size() == 1 ? "samples" : "images",
        counted(channels, unit), unit));
  }
  for (const float mean : transform.mean) {
    if (!std::isfinite(mean))
      throw ConfigError(fmt::format("normalize: mean must be a finite number, found {}", mean));
  }
  for (const float std : transform.std) {
    if (!std::isfinite(std) || std <= 0)
      throw ConfigError(fmt::format("normalize: std must be greater than 0, found {}", std));
  }
}

void check_trained_shape(const Shape& shape, const Shape& trained, const std::string& name) {
  if (shape == trained) return;
  refuse(name, "its samples are {}, those that the network was trained on {}", to_string(shape),
         to_string(trained));
}

// A network gets byte / 255, but floats as they are: a conversion would have to guess their scale.
void check_trained_type(bool bytes, const SampleFormat& trained, const std::string& name) {
  if (bytes == trained.bytes) return;
  refuse(name, "holds {}",
         bytes ? "bytes (uint8), but the network was trained on float32 samples; give an array "
                 "of float32 with the scale of the training data"
               : "numbers that are not uint8, but the network was trained on bytes; give an array "
                 "of uint8, 0 to 255, as the training data");
}

void check_fits(const Dataset& dataset, const SampleFormat& trained, const std::string& name) {
  check_trained_shape(dataset.shape, trained.shape, name);
  check_trained_type(dataset.bytes, trained, name);
  const std::size_t numbers = dataset.target_names.size(), wanted = trained.target_names.size();
  if (numbers == wanted) return;
  const auto targets = [](std::size_t count) {
    return count == 0 ? "classes" : counted(count, "number") + " per sample";
  };
  refuse(name, "its targets are {}, but the network was trained on {}", targets(numbers), targets(wanted));
}

void renumber_classes(TensorDataset& set, const std::vector<std::string>& names,
                      const std::vector<std::string>& trained, const std::string& name) {
  if (names == trained) return;
  std::vector<std::int32_t> numbers;
  for (const std::string& class_name : names) {
    const auto found = std::ranges::find(trained, class_name);
    if (found == trained.end()) {
      refuse(name,
             "class \"{}\" was not there in training; the network knows: {}. Leave out its samples, or "
             "train on all classes",
             class_name, listed_names(trained, 20));
    }
    numbers.push_back(static_cast<std::int32_t>(found - trained.begin()));
  }
  for (std::int32_t& label : std::get<0>(set.targets).edit())
    label = numbers[static_cast<std::size_t>(label)];
}

}  // namespace sweep
