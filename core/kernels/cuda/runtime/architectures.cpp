// Which GPUs the compiled kernels run on. Needs no toolkit, so that it is tested everywhere.
#include <algorithm>
#include <charconv>

#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep {
namespace {

// 90 for "90" and "9.0"; 0 for words such as "native" and "all".
int parse_architecture(std::string_view text) {
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
  const int device = parse_architecture(capability);
  while (!architectures.empty()) {
    const std::size_t end = std::min(architectures.find_first_of(",;"), architectures.size());
    const std::string_view one = architectures.substr(0, end);
    architectures.remove_prefix(std::min(end + 1, architectures.size()));
    const int built = parse_architecture(one.substr(0, one.find('-')));
    if (built == 0) return true;  // a word such as "native": the build machine is taken to be this one
    const bool machine_code = one.find("-virtual") == std::string_view::npos;
    const bool ptx = one.find("-real") == std::string_view::npos;
    if (machine_code && device / 10 == built / 10 && device >= built) return true;
    if (ptx && device >= built) return true;
  }
  return false;
}

}  // namespace sweep
