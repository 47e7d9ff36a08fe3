#include "core/data/readers/raw_data.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace sweep {
namespace {

std::size_t value_count(const SampleValues& samples) {
  return std::visit([](const auto& values) { return values.size(); }, samples);
}

void check_part(const RawData& data, const RawPart& part, const std::string& name) {
  if (part.count == 0) throw DataError(name + ": holds no samples");
  if (value_count(part.samples) != part.count * element_count(data.shape)) {
    throw DataError(name + ": " + std::to_string(part.count) + " samples of shape " + to_string(data.shape) +
                    " need " + std::to_string(part.count * element_count(data.shape)) + " values, found " +
                    std::to_string(value_count(part.samples)));
  }
  if (part.samples.index() != data.train.samples.index()) {
    throw DataError(name + ": one part holds bytes, another floats");
  }
  const std::size_t targets = part.classes.size() + part.values.size();
  const std::size_t per_sample = data.value_names.empty() ? 1 : data.value_names.size();
  if (data.value_names.empty() != part.values.empty() || targets != part.count * per_sample) {
    throw DataError(name + ": holds " + std::to_string(targets) + " targets for " +
                    std::to_string(part.count) + " samples");
  }
  const auto classes = static_cast<std::int64_t>(data.class_names.size());
  for (const std::int32_t index : part.classes) {
    if (index < 0 || index >= classes) {
      throw DataError(name + ": class " + std::to_string(index) + " is out of range: there are " +
                      std::to_string(classes) + " classes");
    }
  }
  for (const float value : part.values) {
    if (!std::isfinite(value)) throw DataError(name + ": a target is not a finite number");
  }
}

}  // namespace

void check_raw_data(const RawData& data, const std::string& name) {
  for (const std::int64_t extent : data.shape) {
    if (extent < 1) throw DataError(name + ": samples of shape " + to_string(data.shape) + " hold nothing");
  }
  if (data.class_names.empty() == data.value_names.empty()) {
    throw DataError(name + ": needs either classes or values as targets");
  }
  check_part(data, data.train, name);
  if (data.validation) check_part(data, *data.validation, name);
  if (data.test) check_part(data, *data.test, name);
}

std::vector<float> feature_means(const RawPart& part, const Shape& shape, std::size_t first,
                                 std::size_t count) {
  const std::size_t features = element_count(shape);
  const auto& values = std::get<std::vector<float>>(part.samples);
  std::vector<double> sums(features);
  std::vector<std::size_t> counts(features);
  for (std::size_t i = first; i < first + count; ++i) {
    for (std::size_t f = 0; f < features; ++f) {
      const float value = values[i * features + f];
      if (std::isnan(value)) continue;
      sums[f] += value;
      ++counts[f];
    }
  }
  std::vector<float> means(features);
  for (std::size_t f = 0; f < features; ++f) {
    if (counts[f] > 0) means[f] = static_cast<float>(sums[f] / static_cast<double>(counts[f]));
  }
  return means;
}

void fill_missing(RawPart& part, const std::vector<float>& means) {
  auto& values = std::get<std::vector<float>>(part.samples);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) values[i] = means[i % means.size()];
  }
}

}  // namespace sweep
