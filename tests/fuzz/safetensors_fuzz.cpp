// Fuzz target: any bytes are a safetensors file or give a DataError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/data/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const sweep::TensorFile file =
        sweep::parse_safetensors(std::string_view(reinterpret_cast<const char*>(data), size), "FILE");
    for (const sweep::NamedTensor& tensor : file.tensors) {
      if (tensor.values.size() != sweep::element_count(tensor.shape) || file.find(tensor.name) != &tensor)
        std::abort();
    }
  } catch (const sweep::DataError&) {
  }
  return 0;
}
