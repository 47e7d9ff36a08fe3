// Makes the batch that a step trains on of samples on the device: gathers and changes them.
#pragma once

#include <cstdint>

#include "core/base/augment_change.h"
#include "core/kernels/cuda/kernels/step_input.h"
#include "core/kernels/cuda/runtime/runtime.h"

namespace sweep::cuda {

/// Which changes, and of what images.
struct AugmentPlan {
  const AugmentStep* steps = nullptr;  // [count], device memory
  int count = 0;                       // at most kMaxAugmentSteps
  std::uint64_t seed = 0;
  std::uint32_t repeat = 0;
  int channels = 0, height = 0, width = 0;
  int targets = 1;  // values of a sample's target: 1 class, or as many numbers
};

/// The batch that augment_samples() makes. Device memory.
struct AugmentedBatch {
  std::byte* samples = nullptr;   // [images][channels][height][width], of the type of the input's samples
  std::byte* targets = nullptr;   // [images][targets]
  StepInput* input = nullptr;     // the step's input, with pointers to the two above
  std::uint32_t* rows = nullptr;  // [images]: 0, 1, 2, …
};

/// Makes `batch` of the samples rows[0 … images − 1] of `input`, each changed as augment_image() of core/data
/// changes sample numbers[i] of its set in epoch input->epoch. Device pointers.
void augment_samples(Stream& stream, const StepInput* input, const std::uint32_t* rows,
                     const std::uint32_t* numbers, int images, const AugmentPlan& plan,
                     const AugmentedBatch& batch);

}  // namespace sweep::cuda
