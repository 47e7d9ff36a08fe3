// Fuzz target: any bytes are records of CIFAR or give a DataError. The first byte chooses CIFAR-10 or
// CIFAR-100.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "core/data/data_from_arrays.h"
#include "core/data/readers/cifar.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::istringstream in(std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  const std::size_t classes = data[0] % 2 == 0 ? 10 : 100;
  sweep::NamedArray samples{"x", {0, 3, 32, 32}, std::vector<std::uint8_t>()};
  sweep::NamedArray labels{"y", {0}, std::vector<std::int64_t>()};
  try {
    sweep::InputFile file(in, "FILE");
    sweep::read_cifar_file(file, classes == 10 ? sweep::kCifar10 : sweep::kCifar100, samples, labels);
  } catch (const sweep::DataError&) {
    return 0;
  }
  // Throws for what a reader must not let through.
  sweep::data_from_arrays({{samples, labels}, std::vector<std::string>(classes, "c")}, {}, "FILE");
  return 0;
}
