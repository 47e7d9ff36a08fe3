#include "core/spec/parallel.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"

namespace sweep {

std::span<const std::string> pipeline_schedule_names() {
  static const std::array<std::string, 2> names = {"gpipe", "1f1b"};  // In the enum's order.
  return names;
}

const std::string& pipeline_schedule_name(PipelineSchedule schedule) {
  return pipeline_schedule_names()[static_cast<std::size_t>(schedule)];
}

PipelineSchedule parse_pipeline_schedule(std::string_view name) {
  const auto names = pipeline_schedule_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw ConfigError("unknown schedule \"" + std::string(name) + "\"; allowed: gpipe, 1f1b");
  return static_cast<PipelineSchedule>(found - names.begin());
}

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
