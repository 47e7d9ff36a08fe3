#include "runmanager/tensorboard/view_hint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "runmanager/records/provenance.h"
#include "runmanager/tensorboard/aggregate.h"

namespace sweep {
namespace {

// A part of a run's name as a regular expression. "lr=0.1" also finds "lr=0.15", so its end belongs to it
// where that matters.
std::string pattern_of(std::string_view part, std::span<const std::string> names) {
  std::string pattern;
  for (const char c : part) {
    if (c == '+') pattern += '\\';  // "." also matches itself.
    pattern += c;
  }
  const bool is_prefix = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto parts = split(name, ',');
    return std::any_of(parts.begin(), parts.end(), [&](std::string_view other) {
      return other != part && other.find(part) != std::string_view::npos;
    });
  });
  return is_prefix ? "(^|,)" + pattern + "(,|$)" : pattern;
}

std::string line(std::string_view what, const std::filesystem::path& directory,
                 std::span<const std::string> names) {
  std::string text = fmt::format("{}: {}\n", what, shell_command({"tensorboard", "--logdir"}, directory));
  const std::string filter = run_filter(names);
  if (!filter.empty()) {
    text += fmt::format(
        "It shows none of more than {} runs until you filter them, and here are {}: type {} for \"Write a "
        "regex "
        "to filter runs\"\n",
        kMaxTickedRuns, names.size(), filter);
  }
  return text;
}

}  // namespace

std::string run_filter(std::span<const std::string> names) {
  std::vector<std::string_view> left(names.begin(), names.end());
  std::vector<std::string_view> chosen;
  while (left.size() > kMaxTickedRuns) {
    std::map<std::string_view, std::size_t> counts;
    for (const std::string_view name : left) {
      for (const std::string_view part : split(name, ',')) ++counts[part];
    }
    std::erase_if(counts, [&left](const auto& part) { return part.second == left.size(); });
    // The most that fit; if none does, the fewest, and further parts leave fewer still.
    const auto rank = [](const auto& part) {
      const auto count = static_cast<std::ptrdiff_t>(part.second);
      return part.second <= kMaxTickedRuns ? count : -count;
    };
    const auto best = std::ranges::max_element(counts, {}, rank);
    if (best == counts.end()) break;
    chosen.push_back(best->first);
    std::erase_if(left, [&](std::string_view name) {
      const auto parts = split(name, ',');
      return std::find(parts.begin(), parts.end(), best->first) == parts.end();
    });
  }
  if (chosen.empty()) return "";
  // In the order of the names.
  const auto order = split(left.front(), ',');
  std::sort(chosen.begin(), chosen.end(), [&](std::string_view a, std::string_view b) {
    return std::find(order.begin(), order.end(), a) < std::find(order.begin(), order.end(), b);
  });
  std::string filter;
  for (const std::string_view part : chosen) filter += (filter.empty() ? "" : ".*") + pattern_of(part, names);
  return filter;
}

std::string view_hint(const std::filesystem::path& directory, std::span<const RunRecord> runs,
                      std::span<const std::string> means) {
  std::vector<std::string> shown;
  for (const RunRecord& run : runs) {
    if (run.status != RunStatus::kSkipped && run.status != RunStatus::kPending) shown.push_back(run.name);
  }
  const char* kWhat = "To look at it";
  if (means.empty()) return line(kWhat, directory, shown);
  if (shown.size() > kMaxTickedRuns && means.size() <= kMaxTickedRuns) {
    return line("To look at the means of the repeats", mean_directory(directory), means) +
           line("To look at every run", directory, shown);
  }
  return line(kWhat, directory, shown) + line("The means of the repeats", mean_directory(directory), means);
}

}  // namespace sweep
