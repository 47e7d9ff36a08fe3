// What commands print on stdout: JSON, and tables in the form that was asked for.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "runmanager/terminal/table.h"

namespace sweep {

/// Prints `json` with an indent of two and a newline at the end. Bytes that are not UTF-8, which texts from
/// files may have, are replaced.
void print_json(const nlohmann::ordered_json& json);

/// Adds --format, and --json for the same as --format json. `format` is set while the command line is read
/// and has to live until then.
void add_format_option(CLI::App& app, TableFormat& format);
/// Adds a flag that says the same as --format `name`. Of such flags one may be given.
void add_format_flag(CLI::App& app, const std::string& name, TableFormat& format);

}  // namespace sweep
