// Fuzz target: any bytes are a tar archive, plain or compressed, or give a DataError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/data/fetch/tar_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream in(std::string(reinterpret_cast<const char*>(data), size));
  try {
    sweep::InputFile file(in, "FILE");
    sweep::TarReader tar(file);
    std::vector<std::uint8_t> piece(1000);
    while (const auto member = tar.next()) {
      std::uint64_t bytes = 0;
      for (std::size_t got = tar.read(piece); got > 0; got = tar.read(piece)) bytes += got;
      if (bytes != member->bytes || member->name.size() > 100) std::abort();
    }
  } catch (const sweep::DataError&) {
  }
  return 0;
}
