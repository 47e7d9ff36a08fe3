// The device that the tests of engines run on: one program serves all of them.
#pragma once

#include "core/engine/device.h"
#include "tests/support/test.h"

namespace sweep::test {

/// The device of the environment variable SWEEP_TEST_DEVICE: "cpu", "cuda", or "cuda-library", which is cuda
/// with NVIDIA's libraries for everything that they can do. Without the variable, programs linked with the
/// stand-in use that, and others the CPU. Every test is skipped, with the reason, where the device is
/// missing.
Device device();

/// Whether the device is the host in a GPU's place, on which an epoch takes minutes.
bool device_is_stand_in();

}  // namespace sweep::test

/// Skips a test of what only the CPU engine has: threads, instruction sets, profiles.
#define SKIP_UNLESS_CPU() \
  if (sweep::test::device().type != sweep::DeviceType::kCpu) GTEST_SKIP() << "of the CPU engine only"

/// Skips a test that would take minutes on the stand-in.
#define SKIP_ON_STAND_IN() \
  if (sweep::test::device_is_stand_in()) GTEST_SKIP() << "takes too long on the stand-in for a GPU"
