// Random changes of the training images, new ones in each epoch.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/augment_change.h"
#include "core/base/shape.h"

namespace sweep {

/// A kind as sweep files name it: {"random_crop": {"padding": 4}}, or "horizontal_flip".
struct AugmentType {
  AugmentKind kind;
  std::string_view name;
  std::string_view argument;  // name of the amount, an integer >= 1; empty: none
};
std::span<const AugmentType> augment_types();

/// The changes that a device has to make itself; see DataLoader::set_on_device().
struct AugmentOptions {
  std::vector<AugmentStep> steps{};  // at most kMaxAugmentSteps
  std::uint64_t seed = 0;
  std::uint32_t repeat = 0;
};

/// Changes the image `values`, [channels, height, width] as `shape` says, by `steps` one after the other:
/// - kRandomCrop: `amount` zeros on every side, then a window of the old size at a uniformly random place, as
///   torchvision's RandomCrop(size, padding).
/// - kHorizontalFlip: left and right are swapped with probability 1/2, as in RandomHorizontalFlip.
/// - kCutout: zeros in a square of `amount` x `amount` around a uniformly random pixel, clipped at the
///   image's edge (DeVries and Taylor, 2017): rows y - amount / 2 to y - amount / 2 + amount - 1.
/// Zero is black, before `normalize`. Step i of a sample uses the block of random numbers (key, i). `shape`
/// has three extents. Thread-safe for different images.
void augment_image(std::span<std::uint8_t> values, const Shape& shape, std::span<const AugmentStep> steps,
                   const AugmentKey& key);
void augment_image(std::span<float> values, const Shape& shape, std::span<const AugmentStep> steps,
                   const AugmentKey& key);

}  // namespace sweep
