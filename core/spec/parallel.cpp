#include "core/spec/parallel.h"

namespace sweep {

bool fits_pattern(std::string_view name, std::string_view pattern) {
  std::size_t n = 0, p = 0;
  // Where to go on if what follows the last * does not fit: the * then stands for one character more.
  std::size_t after_star = std::string_view::npos, name_of_star = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      name_of_star = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++n, ++p;
    } else if (after_star != std::string_view::npos) {
      p = after_star;
      n = ++name_of_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace sweep
