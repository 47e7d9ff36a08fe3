// On which device the tests of engines run: one program of tests serves them all.
#pragma once

#include "core/engine/device.h"

namespace sweep::test {

/// What SWEEP_TEST_DEVICE says: "cpu" (also without the variable), "cuda", or "cuda-library", where NVIDIA's
/// libraries do whatever they can. Without the variable, programs that are linked with the stand-in take
/// that. Where the device is missing every test is skipped, with the
/// reason.
Device device();

/// Whether the device is the stand-in, on which an epoch takes minutes.
bool device_is_stand_in();

}  // namespace sweep::test

/// Leaves a test of what only the CPU engine has (threads, instruction sets, profiles).
#define SKIP_UNLESS_CPU() \
  if (sweep::test::device().type != sweep::DeviceType::kCpu) GTEST_SKIP() << "of the CPU engine only"

/// Leaves a test that would take minutes on the stand-in.
#define SKIP_ON_STAND_IN() \
  if (sweep::test::device_is_stand_in()) GTEST_SKIP() << "takes too long on the stand-in for a GPU"
