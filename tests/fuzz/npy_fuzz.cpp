// Fuzz target: any bytes are an array file or give a DataError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <sstream>
#include <string>
#include <variant>

#include "core/base/error.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  try {
    sweep::InputFile file(in, "FILE");
    const sweep::NamedArray array = sweep::read_npy(sweep::source_of(file));
    const auto count = std::visit([](const auto& values) { return values.size(); }, array.values);
    if (count == 0 || count != sweep::element_count(array.shape)) std::abort();
  } catch (const sweep::DataError&) {
  }
  return 0;
}
