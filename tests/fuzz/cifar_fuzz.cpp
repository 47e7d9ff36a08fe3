// Fuzz target: any bytes are records of CIFAR or give a DataError. The first byte chooses CIFAR-10 or
// CIFAR-100.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "core/data/readers/cifar.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::istringstream in(std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  sweep::RawData set;
  set.shape = {3, 32, 32};
  set.class_names.resize(data[0] % 2 == 0 ? 10 : 100, "x");
  set.train.samples = std::vector<std::uint8_t>();
  try {
    sweep::InputFile file(in, "FILE");
    sweep::read_cifar_file(file, data[0] % 2 == 0 ? sweep::kCifar10 : sweep::kCifar100, {}, set.train);
  } catch (const sweep::DataError&) {
    return 0;
  }
  sweep::check_raw_data(set, "FILE");  // throws for what a reader must not let through
  return 0;
}
