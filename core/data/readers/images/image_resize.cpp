#include "core/data/readers/images/image_file.h"

#include <algorithm>
#include <cmath>

namespace sweep {

namespace {

/// For each output pixel of one direction: which input pixels it is made of. All weights are in one array;
/// those of a pixel add up to 1.
struct Taps {
  std::size_t first = 0;    // input pixel
  std::size_t count = 0;    // of input pixels
  std::size_t weights = 0;  // index of the first weight
};

struct Filter {
  Filter(std::uint32_t from, std::uint32_t to, double overhang);
  std::vector<Taps> taps;
  std::vector<float> weights;
};

Filter::Filter(std::uint32_t from, std::uint32_t to, double overhang) : taps(to) {
  const double scale = (from - overhang) / to;
  const double radius = std::max(scale, 1.0);
  weights.reserve(static_cast<std::size_t>(2 * radius + 2) * to);
  for (std::uint32_t i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(centre - radius)), 0);
    const auto last = std::min<std::int64_t>(static_cast<std::int64_t>(std::ceil(centre + radius)), from);
    Taps& tap = taps[i];
    tap.weights = weights.size();
    double sum = 0;
    for (std::int64_t j = first; j < last; ++j) {
      const double weight = 1 - std::abs(static_cast<double>(j) + 0.5 - centre) / radius;
      // Both ends may round to nothing; the middle cannot.
      if (weight <= 0) {
        if (tap.count == 0) continue;
        break;
      }
      if (tap.count++ == 0) tap.first = static_cast<std::size_t>(j);
      weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (std::size_t k = tap.weights; k < weights.size(); ++k) {
      weights[k] = static_cast<float>(weights[k] / sum);
    }
  }
}

// Sets `sum` to the weighted sum of the rows that follow each other in `rows`. In blocks, which stay in
// registers over all rows.
void add_rows(const std::uint8_t* rows, std::span<const float> weights, std::vector<float>& sum) {
  constexpr std::size_t kBlock = 32;
  const std::size_t row_values = sum.size();
  std::size_t x = 0;
  for (; x + kBlock <= row_values; x += kBlock) {
    float block[kBlock] = {};
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const std::uint8_t* row = rows + k * row_values + x;
      for (std::size_t i = 0; i < kBlock; ++i) block[i] += weights[k] * static_cast<float>(row[i]);
    }
    std::copy_n(block, kBlock, &sum[x]);
  }
  for (; x < row_values; ++x) {
    sum[x] = 0;
    for (std::size_t k = 0; k < weights.size(); ++k)
      sum[x] += weights[k] * static_cast<float>(rows[k * row_values + x]);
  }
}

}  // namespace

// The vertical direction comes first, because it runs along whole rows, which compilers vectorise, and leaves
// few rows for the horizontal one.
std::vector<std::uint8_t> resized(std::span<const std::uint8_t> pixels, ImageSize from, ImageSize to,
                                  std::size_t channels, const Overhang& overhang) {
  const Filter vertical(from.height, to.height, overhang.height),
      horizontal(from.width, to.width, overhang.width);
  std::vector<float> sum(from.width * channels);
  std::vector<std::uint8_t> result(std::size_t{to.height} * to.width * channels);
  std::uint8_t* out = result.data();
  for (const Taps& rows : vertical.taps) {
    add_rows(&pixels[rows.first * sum.size()], std::span(vertical.weights).subspan(rows.weights, rows.count),
             sum);
    for (const Taps& tap : horizontal.taps) {
      const std::span<const float> weights = std::span(horizontal.weights).subspan(tap.weights, tap.count);
      for (std::size_t c = 0; c < channels; ++c) {
        const float* in = sum.data() + tap.first * channels + c;
        float value = 0.5f;
        for (const float weight : weights) {
          value += weight * *in;
          in += channels;
        }
        *out++ = static_cast<std::uint8_t>(std::min(value, 255.0f));
      }
    }
  }
  return result;
}

}  // namespace sweep
