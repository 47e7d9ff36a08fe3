#include "core/data/readers/read_options.h"

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/base/shape.h"

namespace sweep {

std::size_t check_memory(const ReadOptions& options, std::uint64_t count,
                         const std::vector<std::int64_t>& shape, std::size_t value_bytes,
                         const std::string& name) {
  const std::uint64_t most = options.most_bytes == 0 ? usable_memory() : options.most_bytes;
  std::uint64_t values = count;
  bool fits = true;
  for (const std::int64_t extent : shape) {
    fits = fits && !__builtin_mul_overflow(values, static_cast<std::uint64_t>(extent), &values);
  }
  std::uint64_t bytes = 0;
  fits = fits && !__builtin_mul_overflow(values, std::uint64_t{value_bytes}, &bytes);
  if (!fits || bytes > most) {
    throw DataError(name + ": " + std::to_string(count) + " samples of shape " + to_string(shape) + " need " +
                    (fits ? std::to_string(bytes) : "more than 2^64") + " bytes; at most " +
                    std::to_string(most) + " are allowed");
  }
  return values;
}

}  // namespace sweep
