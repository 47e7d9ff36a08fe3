// The values of one axis: a list as written, or a range that is computed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>

#include "runmanager/sweepfile/axes.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMaxAxisValues = 10000;  // More is a typing error, and would fill the memory.

constexpr std::string_view kAxisForms =
    "a list of values, {\"range\": [first, last, step]}, {\"linspace\": [first, last, count]} or "
    "{\"logspace\": [first, last, count]}; for a search also {\"uniform\": [lowest, highest]}, log_uniform, "
    "int_uniform or log_int_uniform";

// Rounds to 12 digits. Sums and powers leave rounding errors in the last digits (0.30000000000000004), which
// the names of runs would show.
double rounded(double value) { return std::strtod(fmt::format("{:.12g}", value).c_str(), nullptr); }

std::vector<double> range(double first, double last, double step) {
  std::vector<double> values;
  // The tolerance keeps the last value of [0.1, 0.3, 0.1], which is 2.0000000000000004 steps away or less.
  const auto steps = static_cast<int>(std::floor((last - first) / step + 1e-9));
  for (int i = 0; i <= steps; ++i) values.push_back(rounded(first + i * step));
  return values;
}

std::vector<double> linspace(double first, double last, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i)
    values.push_back(rounded(first + (last - first) * i / std::max(1, count - 1)));
  if (count > 1) values.back() = last;
  return values;
}

// Equal ratios: both ends are values, not exponents.
std::vector<double> logspace(double first, double last, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    const double t = static_cast<double>(i) / std::max(1, count - 1);
    values.push_back(rounded(std::exp(std::log(first) * (1 - t) + std::log(last) * t)));
  }
  values.front() = first;
  if (count > 1) values.back() = last;
  return values;
}

// Returns what is wrong with the three numbers, or "".
std::string range_error(std::string_view form, const JsonView& first, const JsonView& last,
                        const JsonView& third) {
  if (form == "range") {
    if (third.number() == 0) return "the step is 0, want another";
    if ((last.number() - first.number()) / third.number() < 0)
      return "the step leads away from the last value";
    if ((last.number() - first.number()) / third.number() > kMaxAxisValues) {
      return fmt::format("these are more than {} values", number_text(kMaxAxisValues));
    }
    return "";
  }
  if (!third->is_number_integer() || third.number() < 1 || third.number() > kMaxAxisValues) {
    return fmt::format("the count is {}, want an integer >= 1 and <= {}", describe(third),
                       number_text(kMaxAxisValues));
  }
  if (form == "logspace" && (first.number() <= 0 || last.number() <= 0))
    return "the ends of a logspace must be > 0";
  return "";
}

// The list at the key `form`.
JsonDocument computed_values(const JsonView& list, Problems& problems) {
  const std::string& form = list.key();
  JsonDocument computed(Json::array(), list.place().whole());
  const bool numbers =
      list->is_array() && list->size() == 3 && std::ranges::all_of(*list, [](const Json& number) {
        return number.is_number() && std::isfinite(number.get<double>());
      });
  const bool is_range = form == "range";
  if (!numbers) {
    problems.add_value(list,
                       is_range ? "three numbers [first, last, step]" : "three numbers [first, last, count]");
    return computed;
  }
  const JsonView first = list.at(0), last = list.at(1), third = list.at(2);
  if (const std::string error = range_error(form, first, last, third); !error.empty()) {
    problems.add(list, error);
    return computed;
  }
  const int count = is_range ? 0 : static_cast<int>(third.number());
  const std::vector<double> values = is_range ? range(first.number(), last.number(), third.number())
                                     : form == "linspace" ? linspace(first.number(), last.number(), count)
                                                          : logspace(first.number(), last.number(), count);
  // Integers stay integers as long as all of them are: "epochs" and "batch_size" want them.
  const bool integers =
      first->is_number_integer() && last->is_number_integer() &&
      std::ranges::all_of(values, [](double v) { return v == std::round(v) && std::abs(v) < 1e15; });
  for (const double value : values)
    computed.json.push_back(integers ? Json(static_cast<std::int64_t>(value)) : Json(value));
  return computed;
}

// Runs that differ in nothing would share a name and a directory.
void check_different(const JsonDocument& values, Problems& problems) {
  // A map of texts first: comparing all pairs takes too long for thousands of values.
  std::map<std::string, JsonPlace> seen;
  for (const JsonView& value : JsonView(values).children()) {
    const std::string text = value->is_number() ? number_text(value.number()) : value->dump();
    const auto [found, is_new] = seen.emplace(text, value.place());
    if (is_new) continue;
    const JsonPlace& first = found->second;
    problems.add(
        value,
        fmt::format("got {} a second time{}, want different values", describe(value),
                    first.has_lines() ? fmt::format(" (the first is at {})", first.line_and_column()) : ""));
  }
}

}  // namespace

JsonDocument axis_values(const JsonView& node, Problems& problems) {
  JsonDocument values(Json::array(), node.place());
  if (node->is_array()) {
    values = JsonDocument(node);
    if (node->empty()) problems.add_value(node, "at least one value");
  } else if (node->is_object() && node->size() == 1) {
    const JsonView list = node.children()[0];
    std::vector<std::string> forms = {"range", "linspace", "logspace"};
    const bool is_known = std::ranges::find(forms, list.key()) != forms.end();
    forms.insert(forms.end(), axis_range_forms().begin(), axis_range_forms().end());
    if (!is_known) {
      problems.add_unknown_key(list, forms);
      return values;
    }
    values = computed_values(list, problems);
  } else {
    problems.add_value(node, kAxisForms);
  }
  check_different(values, problems);
  return values;
}

}  // namespace sweep
