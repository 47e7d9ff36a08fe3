#include "core/data/readers/raw_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
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

ChannelStatistics float_statistics(const std::vector<float>& values, const Shape& shape, std::size_t count) {
  const auto channels = static_cast<std::size_t>(shape.front());
  const std::size_t plane = element_count(shape) / channels;
  ChannelStatistics statistics{std::vector<double>(channels), std::vector<double>(channels)};
  std::vector<std::size_t> counts(channels);
  std::vector<double> smallest(channels, std::numeric_limits<double>::infinity()),
      largest(channels, -smallest[0]);
  // Calls add(channel, value) for every value that is not missing.
  const auto for_each = [&](const auto& add) {
    for (std::size_t i = 0; i < count * channels * plane; ++i) {
      const auto value = static_cast<double>(values[i]);
      if (!std::isnan(value)) add(i / plane % channels, value);
    }
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

// How often each byte occurs in each channel, which is all that their statistics depend on.
class ByteCounts {
 public:
  explicit ByteCounts(const Shape& shape)
      : plane_(element_count(shape) / static_cast<std::size_t>(shape.front())),
        counts_(static_cast<std::size_t>(shape.front())) {}

  // Whole samples, [channels, plane] each.
  void add(std::span<const std::uint8_t> bytes) {
    for (std::size_t begin = 0, c = 0; begin < bytes.size(); begin += plane_, c = (c + 1) % counts_.size()) {
      for (const std::uint8_t byte : bytes.subspan(begin, plane_)) ++counts_[c][byte];
    }
  }

  ChannelStatistics statistics() const {
    ChannelStatistics statistics;
    for (const auto& counts : counts_) {
      // Whole numbers are summed exactly; the mean is rounded once.
      std::uint64_t count = 0, sum = 0;
      for (std::size_t v = 0; v < counts.size(); ++v) {
        count += counts[v];
        sum += v * counts[v];
      }
      const auto samples = static_cast<double>(std::max<std::uint64_t>(count, 1));
      const double mean = static_cast<double>(sum) / samples;
      double squares = 0;
      for (std::size_t v = 0; v < counts.size(); ++v) {
        const double difference = static_cast<double>(v) - mean;
        squares += static_cast<double>(counts[v]) * difference * difference;
      }
      const bool is_constant = std::ranges::count_if(counts, [](std::uint64_t n) { return n > 0; }) < 2;
      statistics.mean.push_back(mean / 255);
      statistics.deviation.push_back(is_constant ? 0 : std::sqrt(squares / samples) / 255);
    }
    return statistics;
  }

 private:
  std::size_t plane_;
  std::vector<std::array<std::uint64_t, 256>> counts_;  // [channels]
};

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
  if (const auto* floats = std::get_if<std::vector<float>>(&part.samples))
    return float_statistics(*floats, shape, count);
  ByteCounts counts(shape);
  std::visit(
      [&]<typename Values>(const Values& values) {
        if constexpr (!std::is_same_v<Values, std::vector<float>>)
          counts.add({values.data(), count * element_count(shape)});
      },
      part.samples);
  return counts.statistics();
}

ChannelStatistics channel_statistics(const RawPart& part, const Shape& shape,
                                     std::vector<std::uint32_t> rows) {
  // As they lie in a file, which may be larger than memory.
  std::sort(rows.begin(), rows.end());
  ByteCounts counts(shape);
  std::visit(
      [&]<typename Values>(const Values& values) {
        if constexpr (!std::is_same_v<Values, std::vector<float>>) {
          for (const std::uint32_t row : rows)
            counts.add({values.data() + row * element_count(shape), element_count(shape)});
        }
      },
      part.samples);
  return counts.statistics();
}

void fill_missing(RawPart& part, const Shape& shape, const std::vector<double>& means) {
  const std::size_t plane = element_count(shape) / means.size();
  auto& values = std::get<std::vector<float>>(part.samples);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) values[i] = static_cast<float>(means[i / plane % means.size()]);
  }
}

}  // namespace sweep
