// Which GPUs the compiled kernels run on.
#include <algorithm>
#include <charconv>

#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep {
namespace {

// "90" or "9.0" as 90; 0 if it is no number, as "native" and "all" are none.
int number_of(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != '.') digits += c;
  }
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc{} && end != digits.data() ? number : 0;
}

}  // namespace

bool runs_code_for(std::string_view architectures, std::string_view capability) {
  const int device = number_of(capability);
  while (!architectures.empty()) {
    const std::size_t end = std::min(architectures.find_first_of(",;"), architectures.size());
    const std::string_view one = architectures.substr(0, end);
    architectures.remove_prefix(std::min(end + 1, architectures.size()));
    const int built = number_of(one.substr(0, one.find('-')));
    if (built == 0) return true;  // a word for what was there when it was built
    const bool machine_code = one.find("-virtual") == std::string_view::npos;
    const bool ptx = one.find("-real") == std::string_view::npos;
    if (machine_code && device / 10 == built / 10 && device >= built) return true;
    if (ptx && device >= built) return true;
  }
  return false;
}

}  // namespace sweep
