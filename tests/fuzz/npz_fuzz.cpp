// Fuzz target: any bytes are an archive of arrays, and those a data set, or give a DataError.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "core/data/readers/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int file = ::memfd_create("archive", 0);
  if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  try {
    const sweep::ReadOptions options;
    sweep::check_raw_data(sweep::data_from_arrays(sweep::read_npz_arrays(path, options), options, "FILE"),
                          "FILE");
  } catch (const sweep::DataError&) {
  }
  ::close(file);
  return 0;
}
