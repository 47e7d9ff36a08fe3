// Fuzz target: any bytes are a file of the format SWEEP_FORMAT or give a DataError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/error.h"
#include "tests/fuzz/file_readers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sweep::test::FileReader& reader = sweep::test::file_reader(SWEEP_FORMAT);
  try {
    reader.read(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const sweep::DataError&) {
  }
  return 0;
}
