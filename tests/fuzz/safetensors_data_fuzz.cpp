// Fuzz target: any bytes are a safetensors file of arrays, and those a data set, or give a DataError.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "core/data/data_from_arrays.h"
#include "core/data/readers/safetensors/safetensors_data.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  try {
    sweep::InputFile file(in, "FILE");
    sweep::data_from_arrays({sweep::read_safetensors_arrays(file)}, {}, "FILE");
  } catch (const sweep::DataError&) {
  }
  return 0;
}
