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

bool is_axis_range(const JsonView& node) {
  return node->is_object() && node->size() == 1 &&
         std::ranges::find(axis_range_forms(), node->begin().key()) != axis_range_forms().end();
}

std::optional<Dimension> axis_range(const JsonView& node, Problems& problems) {
  const JsonView ends = node.children().at(0);
  const bool numbers =
      ends->is_array() && ends->size() == 2 && std::ranges::all_of(ends.children(), [](const JsonView& end) {
        return end->is_number() && std::isfinite(end.number());
      });
  if (!numbers) {
    problems.add_value(ends, "two numbers [lowest, highest]");
    return std::nullopt;
  }
  Dimension range;
  range.kind = std::ranges::find(kForms, ends.key(), [](const RangeForm& form) {
                 return std::string_view(form.key);
               })->kind;
  const JsonView low = ends.at(0), high = ends.at(1);
  range.low = low.number();
  range.high = high.number();
  const bool is_integer = has_integers(range.kind), is_log = is_logarithmic(range.kind);
  const std::size_t problems_before = problems.size();
  for (const JsonView& end : {low, high}) {
    if (is_integer && !end->is_number_integer()) problems.add_value(end, "an integer");
  }
  if (is_log && range.low <= 0)
    problems.add_value(low, "a number > 0, as a logarithm is taken of it");
  else if (!(range.low < range.high))
    problems.add(ends, fmt::format("the lowest is {} and the highest {}, want a lower and a higher",
                                   describe(low), describe(high)));
  return problems.size() == problems_before ? std::optional(range) : std::nullopt;
}

}  // namespace sweep
