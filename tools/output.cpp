#include "tools/output.h"

#include <system_error>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

CLI::Option* add_flag_for(CLI::App& app, const std::string& name, TableFormat& format) {
  const auto set = [&format, name] { format = table_format_names().parse(name); };
  return app.add_flag_callback("--" + name, set, "as " + name)->excludes(app.get_option("--format"));
}

}  // namespace

void print_json(const nlohmann::ordered_json& json) { std::cout << printable(json_text(json)); }

void add_format_option(CLI::App& app, TableFormat& format) {
  const auto set = [&format](const std::string& name) { format = table_format_names().parse(name); };
  app.add_option_function<std::string>("--format", set, "of the table; default: text")
      ->type_name("FORMAT")
      ->check(CLI::IsMember(table_format_names().all()));
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
