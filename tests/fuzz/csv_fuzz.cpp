// Fuzz target: any bytes are a table or give a DataError. The first byte chooses the options.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "core/data/data_from_arrays.h"
#include "core/data/readers/csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::istringstream in(std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  sweep::ReadOptions options;
  if ((data[0] & 1) != 0) options.missing = sweep::MissingValues::kMean;
  if ((data[0] & 2) != 0) options.categories = sweep::Categories::kOrdinal;
  try {
    sweep::InputFile file(in, "FILE");
    sweep::InputFile* files[] = {&file};
    const sweep::Dataset table =
        sweep::data_from_arrays(sweep::read_csv_files(files, options), {.missing = options.missing}, "FILE");
    if (table.feature_names.size() != sweep::element_count(table.shape)) std::abort();
  } catch (const sweep::DataError&) {
  }
  return 0;
}
