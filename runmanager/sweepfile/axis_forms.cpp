// What represents the values of one axis: a list, numbers that are computed, or a range to draw from.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>

#include "runmanager/sweepfile/settings/settings.h"
#include "runmanager/sweepfile/space.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMaxAxisValues = 10000;  // More is a typing error, and would fill the memory.

// Keeps the last value of [0.1, 0.3, 0.1], which is 2.0000000000000004 steps away or less.
constexpr double kTolerance = 1e-9;

constexpr std::string_view kAllowed =
    "a list of values, {\"range\": [first, last, step]}, {\"linspace\": [first, last, count]} or "
    "{\"logspace\": [first, last, count]}; for a search also {\"uniform\": [lowest, highest]}, log_uniform, "
    "int_uniform or log_int_uniform";

constexpr const char *kCount = "first, last, count", *kEnds = "lowest, highest";

constexpr AxisForm kForms[] = {{"range", "first, last, step", {}},
                               {"linspace", kCount, {}},
                               {"logspace", kCount, {}},
                               {"uniform", kEnds, DimensionKind::kUniform},
                               {"log_uniform", kEnds, DimensionKind::kLogUniform},
                               {"int_uniform", kEnds, DimensionKind::kInteger},
                               {"log_int_uniform", kEnds, DimensionKind::kLogInteger}};

const AxisForm* form_of(const JsonView& node) {
  if (!node->is_object() || node->size() != 1) return nullptr;
  const auto* const form = std::ranges::find(kForms, node->begin().key(), &AxisForm::key);
  return form == std::end(kForms) ? nullptr : form;
}

// Rounds to 12 digits. Sums and powers leave rounding errors in the last digits (0.30000000000000004), which
// the names of runs would show.
double rounded_to_digits(double value) { return std::strtod(fmt::format("{:.12g}", value).c_str(), nullptr); }

// Whole numbers have no such errors, and may need more digits.
bool is_exact(double value) { return value == std::round(value) && std::abs(value) < rows::kMaxExactInteger; }

// The numbers of a form; none, and a problem, if these are no numbers, or not as many as it has.
std::vector<double> numbers_of(const JsonView& list, const AxisForm& form, Problems& problems) {
  std::vector<double> numbers;
  for (const JsonView& number : list.children())
    if (number->is_number() && std::isfinite(number.number())) numbers.push_back(number.number());
  const std::size_t count = form.drawn ? 2 : 3;
  if (list->is_array() && list->size() == count && numbers.size() == count) return numbers;
  problems.add_value(list, fmt::format("{} numbers [{}]", form.drawn ? "two" : "three", form.numbers));
  return {};
}

// What is wrong with the three numbers, or "".
std::string computed_error(std::string_view form, const std::vector<double>& numbers, const JsonView& third) {
  const double distance = numbers[1] - numbers[0];
  if (!std::isfinite(form == "linspace" ? distance * numbers[2] : distance))
    return "the ends are too far apart for a number";
  if (form == "range") {
    const double steps = (numbers[1] - numbers[0]) / numbers[2];
    if (numbers[2] == 0) return "the step is 0, want another";
    if (steps < 0) return "the step leads away from the last value";
    return steps + kTolerance >= kMaxAxisValues
               ? fmt::format("these are more than {} values", number_text(kMaxAxisValues))
               : "";
  }
  if (!third->is_number_integer() || third.number() < 1 || third.number() > kMaxAxisValues)
    return fmt::format("the count is {}, want an integer >= 1 and <= {}", describe(third),
                       number_text(kMaxAxisValues));
  const bool is_good = form != "logspace" || (numbers[0] > 0 && numbers[1] > 0);
  return is_good ? "" : "the ends of a logspace must be > 0";
}

std::vector<double> computed_values(std::string_view form, double first, double last, double third) {
  const bool is_range = form == "range", is_log = form == "logspace";
  const int count = static_cast<int>(is_range ? std::floor((last - first) / third + kTolerance) + 1 : third);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    const double t = static_cast<double>(i) / std::max(1, count - 1);
    const double value = is_range ? first + i * third
                         : is_log ? std::exp(std::log(first) * (1 - t) + std::log(last) * t)
                                  : first + (last - first) * i / std::max(1, count - 1);
    values.push_back(!is_log && is_exact(value) ? value : rounded_to_digits(value));
  }
  // Both ends are as given, of a logspace too: they are values, not exponents.
  values.front() = first;
  if (!is_range && count > 1) values.back() = last;
  return values;
}

// The list of numbers that `list`, at the key of a form, represents.
JsonDocument computed_list(const JsonView& list, const AxisForm& form, Problems& problems) {
  JsonDocument computed(Json::array(), list.place().whole());
  const std::vector<double> numbers = numbers_of(list, form, problems);
  if (numbers.empty()) return computed;
  if (const std::string error = computed_error(form.key, numbers, list.at(2)); !error.empty()) {
    problems.add(list, error);
    return computed;
  }
  const std::vector<double> values = computed_values(form.key, numbers[0], numbers[1], numbers[2]);
  // Integers stay integers as long as all of them are: "epochs" and "batch_size" want them.
  const bool integers = list.at(0)->is_number_integer() && list.at(1)->is_number_integer() &&
                        std::ranges::all_of(values, is_exact);
  for (const double value : values)
    computed.json.push_back(integers ? Json(static_cast<std::int64_t>(value)) : Json(value));
  return computed;
}

std::optional<Dimension> drawn_range(const JsonView& list, const AxisForm& form, Problems& problems) {
  const std::size_t problems_before = problems.size();
  const std::vector<double> ends = numbers_of(list, form, problems);
  if (ends.empty()) return std::nullopt;
  const Dimension range{.kind = *form.drawn, .low = ends[0], .high = ends[1]};
  for (const JsonView& end : list.children()) {
    if (has_integers(range.kind) && !end->is_number_integer()) problems.add_value(end, "an integer");
  }
  if (is_logarithmic(range.kind) && range.low <= 0)
    problems.add_value(list.at(0), "a number > 0, as a logarithm is taken of it");
  else if (!(range.low < range.high))
    problems.add(list, fmt::format("the lowest is {} and the highest {}, want a lower and a higher",
                                   describe(list.at(0)), describe(list.at(1))));
  else if (!std::isfinite(range.high - range.low))
    problems.add(list, "the ends are too far apart for a number");
  else if (has_integers(range.kind) && (std::max(-range.low, range.high) > rows::kMaxExactInteger ||
                                        range.high - range.low >= rows::kMaxExactInteger))
    problems.add(list, "these are more than 2^53 integers, or larger ones; want fewer");
  return problems.size() == problems_before ? std::optional(range) : std::nullopt;
}

// Runs that differ in nothing would share a name and a directory. By their text, as comparing each with each
// takes too long for thousands of values.
void check_different(const JsonDocument& values, Problems& problems) {
  std::map<std::string, JsonPlace> seen;
  for (const JsonView& value : JsonView(values).children()) {
    const bool is_exact = !value->is_number_integer() || std::abs(value.number()) < rows::kMaxExactInteger;
    const std::string text = value->is_number() && is_exact ? number_text(value.number()) : value->dump();
    const auto [found, is_new] = seen.emplace(text, value.place());
    if (is_new) continue;
    const JsonPlace& first = found->second;
    problems.add(
        value,
        fmt::format("got {} a second time{}, want different values",
                    value->is_object() ? "the same content" : describe(value),
                    first.has_lines() ? fmt::format(" (the first is at {})", first.line_and_column()) : ""));
  }
}

}  // namespace

std::span<const AxisForm> axis_forms() { return kForms; }

bool has_axis_form(const JsonView& node) { return form_of(node) != nullptr; }

Axis read_axis(const JsonView& node, Problems& problems) {
  Axis axis{
      .key = node.key(), .path = {}, .place = node.key_place(), .values = {Json::array(), node.place()}};
  const AxisForm* const form = form_of(node);
  if (node->is_array()) {
    axis.values = JsonDocument(node);
    if (node->empty()) problems.add_value(node, "at least one value");
  } else if (form != nullptr && form->drawn) {
    axis.range = drawn_range(node.children()[0], *form, problems);
    axis.values = {Json::array(), axis.place.whole()};
  } else if (form != nullptr) {
    axis.values = computed_list(node.children()[0], *form, problems);
  } else if (node->is_object() && node->size() == 1) {
    std::vector<std::string> keys;
    for (const AxisForm& known : kForms) keys.emplace_back(known.key);
    problems.add_unknown_key(node.children()[0], keys);
  } else {
    problems.add_value(node, kAllowed);
  }
  check_different(axis.values, problems);
  return axis;
}

}  // namespace sweep
