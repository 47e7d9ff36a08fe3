#include "core/data/channel_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace sweep {
namespace {

ChannelStatistics float_statistics(const TensorDataset& set, std::span<const std::uint32_t> rows) {
  const Shape& shape = set.shape;
  const std::span<const float> values = set.floats();
  const auto channels = static_cast<std::size_t>(shape.front());
  const std::size_t plane = element_count(shape) / channels;
  ChannelStatistics statistics{std::vector<double>(channels), std::vector<double>(channels)};
  std::vector<std::size_t> counts(channels);
  std::vector<double> smallest(channels, std::numeric_limits<double>::infinity()),
      largest(channels, -smallest[0]);
  // Calls add(channel, value) for every value that is not missing.
  const auto for_each = [&](const auto& add) {
    for (const std::uint32_t row : rows) {
      const std::span<const float> sample = values.subspan(row * channels * plane, channels * plane);
      for (std::size_t i = 0; i < sample.size(); ++i) {
        const auto value = static_cast<double>(sample[i]);
        if (!std::isnan(value)) add(i / plane, value);
      }
    }
  };
  for_each([&](std::size_t c, double value) {
    statistics.mean[c] += value;
    ++counts[c];
    smallest[c] = std::min(smallest[c], value);
    largest[c] = std::max(largest[c], value);
  });
  const auto divide = [&](std::vector<double>& sums) {
    for (std::size_t c = 0; c < channels; ++c) sums[c] /= static_cast<double>(counts[c]);
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

ChannelStatistics byte_statistics(const TensorDataset& set, std::span<const std::uint32_t> rows) {
  // As they lie in a file, which may be larger than memory.
  std::vector<std::uint32_t> sorted(rows.begin(), rows.end());
  std::ranges::sort(sorted);
  // How often each byte occurs in each channel, which is all that their statistics depend on.
  std::vector<std::array<std::uint64_t, 256>> channels(static_cast<std::size_t>(set.shape.front()));
  const std::size_t plane = set.sample_values() / channels.size();
  for (const std::uint32_t row : sorted) {
    const std::span<const std::uint8_t> sample = std::get<0>(set.sample(row));
    for (std::size_t c = 0; c < channels.size(); ++c) {
      for (const std::uint8_t byte : sample.subspan(c * plane, plane)) ++channels[c][byte];
    }
  }
  ChannelStatistics statistics;
  for (const auto& counts : channels) {
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

}  // namespace

ChannelStatistics channel_statistics(const TensorDataset& set, std::span<const std::uint32_t> rows) {
  return set.samples.index() == 1 ? float_statistics(set, rows) : byte_statistics(set, rows);
}

void fill_missing(std::vector<float>& values, const Shape& shape, std::span<const float> means) {
  const std::size_t plane = element_count(shape) / means.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) values[i] = means[i / plane % means.size()];
  }
}

}  // namespace sweep
