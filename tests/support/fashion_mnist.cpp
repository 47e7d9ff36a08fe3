#include "tests/support/fashion_mnist.h"

#include <cstdlib>

#include "core/base/error.h"
#include "core/data/known_datasets.h"

namespace sweep::test {

std::optional<std::string> fashion_mnist_problem() {
  try {
    find_dataset("fashion-mnist", "");
    return std::nullopt;
  } catch (const DataError& error) {
    return error.what();
  }
}

bool data_is_required() { return std::getenv("SWEEP_TEST_NEED_DATA") != nullptr; }

}  // namespace sweep::test
