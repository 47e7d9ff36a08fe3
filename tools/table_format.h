// The option of commands that print a table: in which form.
#pragma once

#include <CLI/CLI.hpp>

#include "runmanager/terminal/table.h"

namespace sweep {

/// Adds --format, and --json for the same as --format json. `format` is set while the command line is read
/// and has to live until then.
void add_format_option(CLI::App& app, TableFormat& format);
/// Adds a flag that says the same as --format `name`. Of such flags one may be given.
void add_format_flag(CLI::App& app, const std::string& name, TableFormat& format);

}  // namespace sweep
