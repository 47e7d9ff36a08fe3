// Fuzz target: any bytes are an IDX file or give a DataError. The first byte chooses images or labels.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "core/data/readers/idx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t dimensions = data[0] % 2 == 0 ? 3 : 1;
  std::istringstream in(std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  try {
    sweep::InputFile file(in, "FILE");
    const sweep::NamedArray array = sweep::read_idx(file, dimensions);
    const auto& values = std::get<std::vector<std::uint8_t>>(array.values);
    if (array.shape.size() != dimensions || values.empty() ||
        values.size() != sweep::element_count(array.shape)) {
      std::abort();
    }
  } catch (const sweep::DataError&) {
  }
  return 0;
}
