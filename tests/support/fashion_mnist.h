// Tests of trainings need Fashion-MNIST.
#pragma once

#include <optional>
#include <string>

namespace sweep::test {

/// Why there is no Fashion-MNIST in any place that load_dataset() looks into; nothing if there is.
std::optional<std::string> fashion_mnist_problem();

/// Whether SWEEP_TEST_NEED_DATA is set: what tools/pack makes brings its data, so that a test without them is
/// a failure there, and not a skipped test that nobody notices.
bool data_is_required();

}  // namespace sweep::test

/// Skips a test if there is no Fashion-MNIST, or fails it if data_is_required().
#define SKIP_WITHOUT_FASHION_MNIST()                                       \
  if (const auto fashion_problem = sweep::test::fashion_mnist_problem()) { \
    if (sweep::test::data_is_required()) FAIL() << *fashion_problem;       \
    GTEST_SKIP() << *fashion_problem;                                      \
  }                                                                        \
  static_assert(true, "takes the semicolon")
