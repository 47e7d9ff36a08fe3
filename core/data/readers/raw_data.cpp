#include "core/data/readers/raw_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

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

ChannelStatistics channel_statistics(const RawPart& part, const Shape& shape, std::size_t count) {
  const auto channels = static_cast<std::size_t>(shape.front());
  const std::size_t plane = element_count(shape) / channels;
  ChannelStatistics statistics{std::vector<double>(channels), std::vector<double>(channels)};
  std::vector<std::size_t> counts(channels);
  std::vector<double> smallest(channels, std::numeric_limits<double>::infinity()),
      largest(channels, -smallest[0]);
  // Calls add(channel, value) for every value that is not missing.
  const auto for_each = [&](const auto& add) {
    std::visit(
        [&](const auto& values) {
          using Value = std::decay_t<decltype(values[0])>;
          for (std::size_t i = 0; i < count * channels * plane; ++i) {
            const auto value = static_cast<double>(values[i]) / (std::is_same_v<Value, float> ? 1.0 : 255.0);
            if (!std::isnan(value)) add(i / plane % channels, value);
          }
        },
        part.samples);
  };
  for_each([&](std::size_t c, double value) {
    statistics.mean[c] += value;
    ++counts[c];
    smallest[c] = std::min(smallest[c], value);
    largest[c] = std::max(largest[c], value);
  });
  const auto divide = [&](std::vector<double>& sums) {
    for (std::size_t c = 0; c < channels; ++c)
      sums[c] /= static_cast<double>(std::max(counts[c], std::size_t{1}));
  };
  divide(statistics.mean);
  // In a second pass: the difference of two large sums would lose the digits of a small deviation.
  for_each([&](std::size_t c, double value) {
    statistics.deviation[c] += (value - statistics.mean[c]) * (value - statistics.mean[c]);
  });
  divide(statistics.deviation);
  for (std::size_t c = 0; c < channels; ++c) {
    // The mean of a constant is rounded, too, and the constant would seem to vary by the rounding.
    statistics.deviation[c] = smallest[c] < largest[c] ? std::sqrt(statistics.deviation[c]) : 0;
  }
  return statistics;
}

void fill_missing(RawPart& part, const Shape& shape, const std::vector<double>& means) {
  const std::size_t plane = element_count(shape) / means.size();
  auto& values = std::get<std::vector<float>>(part.samples);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) values[i] = static_cast<float>(means[i / plane % means.size()]);
  }
}

}  // namespace sweep
