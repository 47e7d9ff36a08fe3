// Random changes of the training images, new ones in each epoch.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/shape.h"

namespace sweep {

enum class AugmentKind { kRandomCrop, kHorizontalFlip, kCutout };

/// One change. `amount`: the pixels of padding of kRandomCrop, the side of kCutout's square in pixels, 0 of
/// kHorizontalFlip.
struct AugmentStep {
  AugmentKind kind = AugmentKind::kHorizontalFlip;
  std::int64_t amount = 0;
  friend bool operator==(const AugmentStep&, const AugmentStep&) = default;
};

/// A kind as sweep files name it: {"random_crop": {"padding": 4}}, or "horizontal_flip".
struct AugmentType {
  AugmentKind kind;
  std::string_view name;
  std::string_view argument;  // of the amount, an integer >= 1; empty: there is none
};
std::span<const AugmentType> augment_types();

/// What the random numbers depend on, and nothing else: the same sample is changed alike on every device, for
/// every batch size, order and number of workers.
struct AugmentKey {
  std::uint64_t seed = 0;
  std::uint32_t repeat = 0;
  std::uint32_t epoch = 0;   // from 0
  std::uint32_t sample = 0;  // index in its set
};

/// Changes the image `values`, [channels, height, width] as `shape` says, by `steps` one after the other:
/// - kRandomCrop: `amount` zeros on every side, then a window of the old size at a random place, uniformly;
/// as
///   torchvision's RandomCrop(size, padding).
/// - kHorizontalFlip: left and right are swapped with probability 1/2, as in RandomHorizontalFlip.
/// - kCutout: zeros in a square of `amount` x `amount` around a random pixel, uniformly, of which the image's
///   edge may cut off a part (DeVries and Taylor, 2017): rows y - amount / 2 to y - amount / 2 + amount - 1.
/// Zero is black, before `normalize`. Step i of a sample uses the block of random numbers (key, i). `shape`
/// has three extents. Thread-safe for different images.
void augment_image(std::span<std::uint8_t> values, const Shape& shape, std::span<const AugmentStep> steps,
                   const AugmentKey& key);
void augment_image(std::span<float> values, const Shape& shape, std::span<const AugmentStep> steps,
                   const AugmentKey& key);

}  // namespace sweep
