// Random changes of training images: what each of them is for one sample. Kernels also include this header,
// so that every device draws the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/random.h"

namespace sweep {

enum class AugmentKind { kRandomCrop, kHorizontalFlip, kCutout };

/// One change. `amount`: the pixels of padding of kRandomCrop, the side of kCutout's square in pixels, 0 of
/// kHorizontalFlip.
struct AugmentStep {
  AugmentKind kind = AugmentKind::kHorizontalFlip;
  std::int64_t amount = 0;
  friend bool operator==(const AugmentStep&, const AugmentStep&) = default;
};

/// Max number of changes of one image.
inline constexpr std::size_t kMaxAugmentSteps = 16;

/// What the random numbers depend on, and nothing else: the same sample is changed alike on every device, for
/// every batch size, order and number of workers.
struct AugmentKey {
  std::uint64_t seed = 0;
  std::uint32_t repeat = 0;
  std::uint32_t epoch = 0;   // from 0
  std::uint32_t sample = 0;  // index in its set
};

/// What a step does to one image. Without default values, because kernels share arrays of them.
struct AugmentChange {
  AugmentKind kind;
  // kRandomCrop: pixel (y, x) becomes what was at (y + top, x + left), or black beyond the edge.
  // kHorizontalFlip: left and right are swapped unless `size` is 0.
  // kCutout: rows top to top + size - 1 of columns left to left + size - 1 become black.
  int top, left, size;
};

/// In [0, bound). The values' probabilities differ by less than bound / 2^32.
constexpr int random_below(std::uint32_t random, std::int64_t bound) {
  return static_cast<int>(static_cast<std::uint64_t>(random) * static_cast<std::uint64_t>(bound) >> 32);
}

/// Draws step number `index` of a list for the sample that `key` names, an image of `height` x `width`. The
/// sample has the place of the count in a RandomStream's counter.
constexpr AugmentChange draw_change(const AugmentStep& step, std::size_t index, const AugmentKey& key,
                                    std::int64_t height, std::int64_t width) {
  constexpr std::uint32_t kStepShift = 16;  // above every RandomUse
  const auto use = static_cast<std::uint32_t>(RandomUse::kAugment);
  const std::array<std::uint32_t, 4> random =
      philox4x32({key.sample, use | static_cast<std::uint32_t>(index) << kStepShift, key.epoch, key.repeat},
                 {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)});
  const int amount = static_cast<int>(step.amount);
  switch (step.kind) {
    case AugmentKind::kRandomCrop:
      return {step.kind, random_below(random[0], 2 * step.amount + 1) - amount,
              random_below(random[1], 2 * step.amount + 1) - amount, 0};
    case AugmentKind::kHorizontalFlip:
      return {step.kind, 0, 0, static_cast<int>(random[0] >> 31)};
    case AugmentKind::kCutout:
      return {step.kind, random_below(random[0], height) - amount / 2,
              random_below(random[1], width) - amount / 2, amount};
  }
  return {step.kind, 0, 0, 0};
}

/// Where the changes, made one after the other, take pixel (y, x) of the result from: sets y and x to that
/// place of the image before them. False: the pixel is black.
constexpr bool find_source(const AugmentChange* changes, int count, int height, int width, int& y, int& x) {
  for (int i = count - 1; i >= 0; --i) {
    const AugmentChange& change = changes[i];
    if (change.kind == AugmentKind::kRandomCrop) {
      y += change.top;
      x += change.left;
      if (y < 0 || y >= height || x < 0 || x >= width) return false;
    } else if (change.kind == AugmentKind::kHorizontalFlip) {
      if (change.size != 0) x = width - 1 - x;
    } else if (y >= change.top && y < change.top + change.size && x >= change.left &&
               x < change.left + change.size) {
      return false;
    }
  }
  return true;
}

}  // namespace sweep
