// `sweep report`: a sweep as one HTML page.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "core/base/file.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/inspect/watch.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/sweep_directory.h"
#include "runmanager/report/page.h"
#include "runmanager/report/report.h"
#include "runmanager/slurm/slurm_jobs.h"
#include "runmanager/training/stop_signals.h"
#include "tools/output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::vector<fs::path> directories;
  fs::path output;  // empty: report.html in the first directory
  fs::path specs;   // empty: not written
  bool follow = false;
};

constexpr int kSecondsToReload = 3;
constexpr std::chrono::seconds kBetweenPages{1};

// Whether any of the sweeps is trained, or will be by tasks of a cluster.
bool any_lives(const std::vector<fs::path>& directories, SlurmClient& client) {
  return std::ranges::any_of(directories, [&](const fs::path& directory) {
    if (SweepDirectory::is_held(directory)) return true;
    if (!has_slurm_jobs(directory)) return false;
    const SlurmStatus status = slurm_status(directory, client);
    return (!status.known || status.any_live()) &&
           !std::ranges::all_of(list_runs(directory),
                                [](const RunRecord& run) { return has_ended(run.status); });
  });
}

// Writes the page again whenever the sweeps have changed, until they have ended or a signal comes. Their
// records are read all the time, so that reading takes a small part of it. Returns the last that was written.
ReportData follow(const ReportOptions& options, const fs::path& output) {
  const StopSignals signals;
  SlurmClient client;
  nlohmann::ordered_json written;
  while (true) {
    const auto begin = std::chrono::steady_clock::now();
    // In this order: a sweep that ends in between is noticed the next time.
    const bool lives = any_lives(options.directories, client) && StopSignals::requested() == 0;
    ReportData data = read_report_data(options.directories);
    nlohmann::ordered_json model = report_model(data, "");
    if (lives) model["reload_seconds"] = kSecondsToReload;
    if (model != written) {
      written = model;
      model["date"] = utc_time();
      write_file_atomically(output, html_page(data.title, model), Survives::kKill);
    }
    if (!lives) return data;
    const auto end = begin + std::max<std::chrono::steady_clock::duration>(
                                 kBetweenPages, kRestPerReading * (std::chrono::steady_clock::now() - begin));
    while (std::chrono::steady_clock::now() < end && StopSignals::requested() == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

int report(const ReportOptions& options) {
  check_differ(options.directories);
  const fs::path output = options.output.empty() ? options.directories.front() / kReportFile : options.output;
  ReportData data = read_report_data(options.directories);
  if (!options.follow) write_file_atomically(output, html_page(data.title, report_model(data, utc_time())));
  std::cout << output.string() << std::endl;
  if (options.follow) data = follow(options, output);
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
          .add_to = command_with<ReportOptions>(report, [](CLI::App& app, ReportOptions& options) {
            add_value(app, "directories DIR", options.directories,
                      "runs/NAME; several are put side by side in one report")
                ->required();
            add_value(app, "-o,--output FILE", options.output,
                      "where to; default: report.html in the first directory");
            add_value(app, "--specs FOLDER", options.specs,
                      "also write the charts with their data to this folder, for Vega elsewhere");
            app.add_flag(
                "--follow", options.follow,
                "write the page again as trials end, until the sweep ends or Ctrl-C; in a browser it "
                "reloads itself");
          })};
}

}  // namespace sweep
