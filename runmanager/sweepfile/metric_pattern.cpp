#define PCRE2_CODE_UNIT_WIDTH 8
#include "runmanager/sweepfile/metric_pattern.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"

namespace sweep {
namespace {

std::optional<double> number_of(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  if (text.starts_with('+')) text.remove_prefix(1);
  return number_in<double>(text);
}

}  // namespace

std::optional<std::int64_t> step_in(double number) {
  constexpr double kLimit = 1e15;
  const bool is_step = number >= 0 && number < kLimit && std::floor(number) == number;
  return is_step ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
}

MetricPattern::MetricPattern(const std::string& text) {
  int error = 0;
  std::size_t offset = 0;
  code_ = {pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, &error, &offset, nullptr),
           pcre2_code_free};
  if (!code_) {
    std::array<char, 256> reason{};
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(reason.data()), reason.size());
    throw ConfigError(fmt::format("a regular expression; {} at its character {}", reason.data(), offset));
  }
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // Without it, matching is slower.
  match_ = {pcre2_match_data_create_from_pattern(code_.get(), nullptr), pcre2_match_data_free};
  const int step = pcre2_substring_number_from_name(code_.get(), reinterpret_cast<PCRE2_SPTR>("step"));
  step_ = step > 0 ? static_cast<std::size_t>(step) : 0;
  value_ = step_ == 1 ? 2 : 1;
  std::uint32_t groups = 0;
  pcre2_pattern_info(code_.get(), PCRE2_INFO_CAPTURECOUNT, &groups);
  if (groups < value_) throw ConfigError("a regular expression with a group, which is the value");
}

std::optional<MetricPattern::Match> MetricPattern::find(std::string_view line) const {
  if (pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(line.data()), line.size(), 0, 0, match_.get(),
                  nullptr) <= 0)
    return std::nullopt;
  const std::size_t* const ends = pcre2_get_ovector_pointer(match_.get());
  const auto group = [&](std::size_t number) -> std::optional<std::string_view> {
    const std::size_t begin = ends[2 * number], end = ends[2 * number + 1];
    return begin == PCRE2_UNSET ? std::nullopt : std::optional(line.substr(begin, end - begin));
  };
  const std::optional<std::string_view> value_text = group(value_), step_text = group(step_);
  if (!value_text) return std::nullopt;
  Match match;
  if (const std::optional<double> value = number_of(*value_text))
    match.value = *value;
  else
    match.problem = fmt::format("its value, {}, is no number", *value_text);
  if (step_ == 0 || !step_text) return match;
  if (const std::optional<double> step = number_of(*step_text)) match.step = step_in(*step);
  if (!match.step) match.problem = fmt::format("its step, {}, is no whole number from 0 to 1e15", *step_text);
  return match;
}

}  // namespace sweep
