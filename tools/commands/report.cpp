// `sweep report`: a sweep as one HTML page.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "core/base/file.h"
#include "runmanager/records/provenance.h"
#include "runmanager/report/embedded_file.h"
#include "runmanager/report/page.h"
#include "runmanager/report/report.h"
#include "tools/commands.h"
#include "tools/exit_code.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::vector<fs::path> directories;
  fs::path output;  // empty: report.html in the first directory
  fs::path specs;   // empty: not written
};

int report(const ReportOptions& options) {
  const ReportData data = read_report_data(options.directories);
  const fs::path output =
      options.output.empty() ? options.directories.front() / "report.html" : options.output;
  write_file_atomically(output, html_page(data.title, report_model(data, utc_time())));
  std::cout << output.string() << "\n";
  if (!options.specs.empty()) {
    for (const fs::path& path : write_chart_specs(data, options.specs)) std::cout << path.string() << "\n";
  }
  if (!has_vega()) {
    std::cerr
        << "The report has no charts: this program was built without Vega. Install Debian's libjs-vega and "
           "build it again.\n";
  }
  return kExitDone;
}

}  // namespace

Command report_command() {
  return {.name = "report",
          .description = "write one HTML page: the answer, charts, pictures, tables, provenance",
          .missing_argument = "a directory is needed: sweep report runs/NAME",
          .add_to = [](CLI::App& app) -> CommandAction {
            auto options = std::make_shared<ReportOptions>();
            app.add_option("directories", options->directories,
                           "runs/NAME; several are put side by side in one report")
                ->type_name("DIR")
                ->required();
            app.add_option("-o,--output", options->output,
                           "where to; default: report.html in the first directory")
                ->type_name("FILE");
            app.add_option("--specs", options->specs,
                           "also write the charts with their data to this folder, for Vega elsewhere")
                ->type_name("FOLDER");
            return [options](const auto&) { return report(*options); };
          }};
}

}  // namespace sweep
