// Axes that are a range of numbers, which a search draws from.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "runmanager/sweepfile/axes.h"

namespace sweep {
namespace {

struct RangeForm {
  const char* key;
  DimensionKind kind;
};

constexpr std::array<RangeForm, 4> kForms = {{{"uniform", DimensionKind::kUniform},
                                              {"log_uniform", DimensionKind::kLogUniform},
                                              {"int_uniform", DimensionKind::kInteger},
                                              {"log_int_uniform", DimensionKind::kLogInteger}}};

}  // namespace

std::span<const std::string> axis_range_forms() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const RangeForm& form : kForms) list.emplace_back(form.key);
    return list;
  }();
  return names;
}

bool is_axis_range(const JsonNode& node) {
  return node.is(JsonKind::kObject) && node.members.size() == 1 &&
         std::ranges::find(axis_range_forms(), node.members[0].key) != axis_range_forms().end();
}

std::optional<Dimension> axis_range(const JsonNode& node, Problems& problems) {
  const JsonMember& member = node.members.at(0);
  const JsonNode& ends = member.value;
  const bool numbers = ends.is(JsonKind::kArray) && ends.elements.size() == 2 &&
                       std::ranges::all_of(ends.elements, [](const JsonNode& end) {
                         return end.is_number() && std::isfinite(end.number);
                       });
  if (!numbers) {
    problems.add_value(ends, "two numbers [lowest, highest]");
    return std::nullopt;
  }
  Dimension range;
  range.kind = std::ranges::find(kForms, member.key, [](const RangeForm& form) {
                 return std::string_view(form.key);
               })->kind;
  const JsonNode &low = ends.elements[0], &high = ends.elements[1];
  range.low = low.number;
  range.high = high.number;
  const bool is_integer = has_integers(range.kind), is_log = is_logarithmic(range.kind);
  const std::size_t problems_before = problems.size();
  for (const JsonNode* end : {&low, &high}) {
    if (is_integer && !end->is(JsonKind::kInteger)) problems.add_value(*end, "an integer");
  }
  if (is_log && range.low <= 0)
    problems.add_value(low, "a number > 0, as a logarithm is taken of it");
  else if (!(range.low < range.high))
    problems.add(*ends.location, fmt::format("the lowest is {} and the highest {}, want a lower and a higher",
                                             describe(low), describe(high)));
  return problems.size() == problems_before ? std::optional(range) : std::nullopt;
}

}  // namespace sweep
