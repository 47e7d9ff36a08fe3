#include "runmanager/config/repeats.h"

#include <cmath>
#include <map>

#include "runmanager/config/run_name.h"

namespace sweep {

std::vector<RepeatGroup> repeat_groups(std::span<const Params> runs) {
  std::vector<RepeatGroup> groups;
  std::map<std::string, std::size_t> known;  // the text of a combination: its place
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Params params = runs[i];
    if (std::erase_if(params, [](const auto& param) { return param.first == kRepeatKey; }) == 0) continue;
    std::string text;  // Names and values cannot hold a NUL.
    for (const auto& [key, value] : params) text += key + '\0' + param_text(value) + '\0';
    const auto [at, is_new] = known.emplace(std::move(text), groups.size());
    if (is_new) groups.push_back({std::move(params), {}, {}});
    groups[at->second].runs.push_back(i);
  }
  std::vector<Params> named;
  for (const RepeatGroup& group : groups) named.push_back(group.params);
  std::vector<std::string> names = run_names(named);
  for (std::size_t i = 0; i < names.size(); ++i) groups[i].name = std::move(names[i]);
  return groups;
}

Spread spread_of(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / (count - 1))};
}

}  // namespace sweep
