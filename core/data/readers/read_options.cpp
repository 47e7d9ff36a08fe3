#include "core/data/readers/read_options.h"

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/base/shape.h"

namespace sweep {

void check_memory(std::uint64_t count, const std::vector<std::int64_t>& shape, std::size_t value_bytes,
                  const std::string& name) {
  const std::uint64_t max_bytes = usable_memory();
  std::uint64_t bytes = 0;
  bool fits = !__builtin_mul_overflow(count, std::uint64_t{value_bytes}, &bytes);
  for (const std::int64_t extent : shape) {
    fits = fits && !__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes);
  }
  if (fits && bytes <= max_bytes) return;
  throw DataError(name + ": " + std::to_string(count) + " samples of shape " + to_string(shape) + " need " +
                  (fits ? std::to_string(bytes) : "more than 2^64") + " bytes; at most " +
                  std::to_string(max_bytes) + " are allowed");
}

}  // namespace sweep
