#include "tools/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "core/network/arguments.h"
#include "runmanager/text/json_document.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

CLI::Option* add_flag_for(CLI::App& app, const std::string& name, TableFormat& format) {
  const auto set = [&format, name] { format = table_format_names().parse(name); };
  return app.add_flag_callback("--" + name, set, "as " + name)->excludes(app.get_option("--format"));
}

// The message for `word`, "" if it `is_right`.
std::string want(bool is_right, const std::string& word, const std::string& wanted) {
  return is_right ? "" : fmt::format("got {}, want {}", word, wanted);
}

}  // namespace

CLI::Validator one_of(std::vector<std::string> choices) {
  const std::string description = fmt::format("{{{}}}", fmt::join(choices, ","));
  const auto check = [choices = std::move(choices)](std::string& word) {
    const bool is_right = std::ranges::find(choices, word) != choices.end();
    return want(is_right, word, listed(choices) + suggestion(word, choices));
  };
  return CLI::Validator(check, description);
}

CLI::Validator whole_number(int least, int most) {
  const auto check = [least, most](std::string& word) {
    const auto number = number_in<int>(word);
    std::string problem = want(number && *number >= least && *number <= most, word,
                               fmt::format("a whole number from {} to {}", least, most));
    if (problem.empty()) word = std::to_string(*number);  // CLI11 takes 010 for 8.
    return problem;
  };
  return CLI::Validator(check, fmt::format("{}-{}", least, most));
}

CLI::Validator number_not_negative(const std::string& wanted) {
  const auto check = [wanted](std::string& word) {
    const double number = number_in<double>(word).value_or(-1);
    return want(std::isfinite(number) && number >= 0, word, wanted);
  };
  return CLI::Validator(check, "");
}

void print_json(const nlohmann::ordered_json& json) { std::cout << printable(json_text(json)); }

void add_format_option(CLI::App& app, TableFormat& format) {
  const auto set = [&format](const std::string& name) { format = table_format_names().parse(name); };
  app.add_option_function<std::string>("--format", set, "of the table; default: text")
      ->type_name("FORMAT")
      ->check(one_of(table_format_names().all()));
  add_flag_for(app, "json", format)->description("the same as --format json");
}

void add_format_flag(CLI::App& app, const std::string& name, TableFormat& format) {
  CLI::Option* const flag = add_flag_for(app, name, format);
  for (const std::string& format_name : table_format_names().all()) {
    CLI::Option* const other = app.get_option_no_throw("--" + format_name);
    if (other != nullptr && other != flag) flag->excludes(other);
  }
}

void check_differ(const std::vector<std::filesystem::path>& directories) {
  std::error_code error;  // what is not there is reported by those who read it
  for (auto later = directories.begin(); later != directories.end(); ++later) {
    for (auto earlier = directories.begin(); earlier != later; ++earlier) {
      if (std::filesystem::equivalent(*earlier, *later, error))
        throw ConfigError(later->string() + ": is given twice; name each directory once");
    }
  }
}

}  // namespace sweep
