#include "core/data/readers/images/image_resize.h"

#include <algorithm>
#include <cmath>

namespace sweep {

RowResizer::Filter::Filter(std::uint32_t from, std::uint32_t to) : taps(to) {
  const double scale = static_cast<double>(from) / to;
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

RowResizer::RowResizer(ImageSize from, ImageSize to, std::size_t channels)
    : to_(to),
      channels_(channels),
      vertical_(from.height, to.height),
      horizontal_(from.width, to.width),
      result_(std::size_t{to.height} * to.width * channels) {}

// Adds a sum of rows, in memory of one that is finished if there is any.
void RowResizer::open_row(std::size_t values) {
  if (spare_.empty()) spare_.emplace_back();
  open_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  open_.back().assign(values, 0.0f);
}

void RowResizer::add_row(std::span<const std::uint8_t> row) {
  const std::size_t y = rows_++;
  const std::vector<Taps>& taps = vertical_.taps;
  // Ranges of rows move down with the output row, so those that `row` belongs to follow each other.
  std::size_t end = first_open_;
  for (; end < taps.size() && taps[end].first <= y; ++end) {
    if (end - first_open_ == open_.size()) open_row(row.size());
  }
  const auto weight = [&](std::size_t out) {
    return vertical_.weights[taps[out].weights + y - taps[out].first];
  };
  // In pairs, as a smaller image has most rows in two sums: so each value is converted once.
  std::size_t out = first_open_;
  for (; out + 2 <= end; out += 2) {
    float* sum0 = open_[out - first_open_].data();
    float* sum1 = open_[out - first_open_ + 1].data();
    const float weight0 = weight(out), weight1 = weight(out + 1);
    for (std::size_t x = 0; x < row.size(); ++x) {
      const auto value = static_cast<float>(row[x]);
      sum0[x] += weight0 * value;
      sum1[x] += weight1 * value;
    }
  }
  if (out < end) {
    float* sum = open_[out - first_open_].data();
    const float weight0 = weight(out);
    for (std::size_t x = 0; x < row.size(); ++x) sum[x] += weight0 * static_cast<float>(row[x]);
  }
  std::size_t finished = 0;
  while (first_open_ < taps.size() && taps[first_open_].first + taps[first_open_].count == y + 1) {
    finish_row(first_open_, open_[finished]);
    spare_.push_back(std::move(open_[finished]));
    ++finished;
    ++first_open_;
  }
  open_.erase(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(finished));
}

void RowResizer::finish_row(std::size_t out_row, const std::vector<float>& sum) {
  std::uint8_t* out = result_.data() + out_row * to_.width * channels_;
  for (const Taps& tap : horizontal_.taps) {
    const std::span<const float> weights = std::span(horizontal_.weights).subspan(tap.weights, tap.count);
    for (std::size_t c = 0; c < channels_; ++c) {
      const float* in = sum.data() + tap.first * channels_ + c;
      float value = 0.5f;
      for (const float weight : weights) {
        value += weight * *in;
        in += channels_;
      }
      *out++ = static_cast<std::uint8_t>(std::min(value, 255.0f));
    }
  }
}

}  // namespace sweep
