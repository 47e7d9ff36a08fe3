// What commands share: what they print on stdout, JSON and tables in the form that was asked for, and how
// they declare options. Their sources include it alone for CLI11 and the streams.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runmanager/terminal/table.h"
#include "runmanager/terminal/terminal.h"
#include "tools/commands.h"

namespace sweep {

/// Prints `json` with an indent of two and a newline at the end. Bytes that are not UTF-8, which texts from
/// files may have, are replaced.
void print_json(const nlohmann::ordered_json& json);

/// A table of `format` as standard output shows it.
inline TableStyle style_of(TableFormat format) { return {format, stdout_unicode(), stdout_width()}; }

/// Prints what `format` asks for: json(), text(), or the tables of tables().
template <typename Json, typename Text, typename Tables>
void print_as(TableFormat format, const Json& json, const Text& text, const Tables& tables) {
  if (format == TableFormat::kJson)
    print_json(json());
  else if (format == TableFormat::kText)
    std::cout << text() << std::flush;
  else
    std::cout << formatted_tables(tables(), style_of(format)) << std::flush;
}

/// Adds an option, or an argument of the command, with the name of its value in help: "--by KEY", "file
/// FILE".
template <typename Value>
CLI::Option* add_value(CLI::App& app, const std::string& names, Value& value, const std::string& help) {
  const std::size_t blank = names.find(' ');
  return app.add_option(names.substr(0, blank), value, help)->type_name(names.substr(blank + 1));
}

/// What an option accepts, and its messages: "got x, want …". CLI11's own do not say what is nearest, and are
/// about the range also where a word is no whole number.
CLI::Validator one_of(std::vector<std::string> choices);  ///< Completion offers these.
CLI::Validator whole_number(int least, int most);         ///< From `least` to `most`.
/// Finite numbers >= 0. `wanted`: "a number of seconds >= 0".
CLI::Validator number_not_negative(const std::string& wanted);

/// Adds an option for a whole number from `least` to `most`.
template <typename Number>
CLI::Option* add_count(CLI::App& app, const std::string& name, Number& value, const std::string& help,
                       int least, int most) {
  return add_value(app, name + " N", value, help)->transform(whole_number(least, most));
}

/// Adds --format, and --json for the same as --format json. `format` is set while the command line is read
/// and has to live until then.
void add_format_option(CLI::App& app, TableFormat& format);
/// Adds a flag that says the same as --format `name`. Of such flags one may be given.
void add_format_flag(CLI::App& app, const std::string& name, TableFormat& format);

/// Throws ConfigError if two of the directories are the same, as their runs would count twice.
void check_differ(const std::vector<std::filesystem::path>& directories);

}  // namespace sweep
