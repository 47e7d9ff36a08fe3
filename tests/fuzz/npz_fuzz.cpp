// Fuzz target: any bytes are an archive of arrays, and those a data set, or give a DataError.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "core/data/data_from_arrays.h"
#include "core/data/readers/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int file = ::memfd_create("archive", 0);
  if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  const std::filesystem::path path = "/proc/self/fd/" + std::to_string(file);
  try {
    sweep::data_from_arrays(sweep::read_npz(std::span(&path, 1), {}), {}, "FILE");
  } catch (const sweep::DataError&) {
  }
  ::close(file);
  return 0;
}
