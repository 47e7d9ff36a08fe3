// A regular expression that finds a metric in what a program prints.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;

namespace sweep {

/// The step that a number is: a whole one from 0 to 1e15; nothing for any other.
std::optional<std::int64_t> step_in(double number);

/// As Perl's: the first group is the value; one that is named "step", (?<step>…), is its step. Not
/// thread-safe.
class MetricPattern {
 public:
  struct Match {
    double value = 0;
    std::optional<std::int64_t> step = {};
    std::string problem = "";  // why it does not count: of its value or its step; "" if it does
  };

  /// Throws ConfigError with what is wrong: it is no expression, or has no group for the value.
  explicit MetricPattern(const std::string& text);

  /// The first match in the line.
  std::optional<Match> find(std::string_view line) const;

 private:
  std::shared_ptr<pcre2_real_code_8> code_;
  std::shared_ptr<pcre2_real_match_data_8> match_;
  std::size_t value_ = 1, step_ = 0;  // groups; 0: none
};

}  // namespace sweep
