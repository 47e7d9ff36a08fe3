// Tests of trainings need Fashion-MNIST.
#pragma once

#include "core/data/known_datasets.h"
#include "tests/support/test.h"

namespace sweep::test {

/// Why there is no Fashion-MNIST in any place that load_dataset() looks into; nothing if there is.
inline std::optional<std::string> fashion_mnist_problem() {
  try {
    find_dataset("fashion-mnist", "");
    return std::nullopt;
  } catch (const DataError& error) {
    return error.what();
  }
}

/// Whether SWEEP_TEST_NEED_DATA is set: what tools/pack makes brings its data, so that a test without them is
/// a failure there, and not a skipped test that nobody notices.
inline bool data_is_required() { return std::getenv("SWEEP_TEST_NEED_DATA") != nullptr; }

}  // namespace sweep::test

/// Skips a test if there is no Fashion-MNIST, or fails it if data_is_required().
#define SKIP_WITHOUT_FASHION_MNIST()                                       \
  if (const auto fashion_problem = sweep::test::fashion_mnist_problem()) { \
    if (sweep::test::data_is_required()) FAIL() << *fashion_problem;       \
    GTEST_SKIP() << *fashion_problem;                                      \
  }                                                                        \
  static_assert(true, "takes the semicolon")
