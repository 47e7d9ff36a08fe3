#include "core/data/readers/images/image_resize.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sweep {

std::vector<RowResizer::Taps> RowResizer::taps(std::uint32_t from, std::uint32_t to) {
  const double scale = static_cast<double>(from) / to;
  const double radius = std::max(scale, 1.0);
  std::vector<Taps> all(to);
  for (std::uint32_t i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const auto first = static_cast<std::int64_t>(std::floor(centre - radius));
    const auto last = static_cast<std::int64_t>(std::ceil(centre + radius));
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t j = std::max<std::int64_t>(first, 0); j < std::min<std::int64_t>(last, from); ++j) {
      const double weight = 1 - std::abs(static_cast<double>(j) + 0.5 - centre) / radius;
      if (weight <= 0) {
        if (weights.empty()) continue;
        break;
      }
      if (weights.empty()) all[i].first = static_cast<std::size_t>(j);
      weights.push_back(weight);
      sum += weight;
    }
    for (const double weight : weights) all[i].weights.push_back(static_cast<float>(weight / sum));
  }
  return all;
}

RowResizer::RowResizer(ImageSize from, ImageSize to, std::size_t channels)
    : from_(from),
      to_(to),
      channels_(channels),
      vertical_(taps(from.height, to.height)),
      horizontal_(taps(from.width, to.width)),
      result_(std::size_t{to.height} * to.width * channels) {}

void RowResizer::add_row(std::span<const std::uint8_t> row) {
  const std::size_t y = rows_++;
  // Ranges of rows move down with the output row, so those that `row` belongs to follow each other.
  for (std::size_t out = first_open_; out < vertical_.size() && vertical_[out].first <= y; ++out) {
    if (out - first_open_ == open_.size()) {
      if (spare_.empty()) spare_.emplace_back();
      open_.push_back(std::move(spare_.back()));
      spare_.pop_back();
      open_.back().assign(row.size(), 0.0f);
    }
    float* sum = open_[out - first_open_].data();
    const float weight = vertical_[out].weights[y - vertical_[out].first];
    for (std::size_t x = 0; x < row.size(); ++x) sum[x] += weight * static_cast<float>(row[x]);
  }
  std::size_t finished = 0;
  while (first_open_ < vertical_.size() && vertical_[first_open_].end() == y + 1) {
    finish_row(first_open_, open_[finished]);
    spare_.push_back(std::move(open_[finished]));
    ++finished;
    ++first_open_;
  }
  open_.erase(open_.begin(), open_.begin() + static_cast<std::ptrdiff_t>(finished));
}

void RowResizer::finish_row(std::size_t out_row, const std::vector<float>& sum) {
  std::uint8_t* out = result_.data() + out_row * to_.width * channels_;
  for (const Taps& tap : horizontal_) {
    for (std::size_t c = 0; c < channels_; ++c) {
      const float* in = sum.data() + tap.first * channels_ + c;
      float value = 0.5f;
      for (const float weight : tap.weights) {
        value += weight * *in;
        in += channels_;
      }
      *out++ = static_cast<std::uint8_t>(std::min(value, 255.0f));
    }
  }
}

}  // namespace sweep
