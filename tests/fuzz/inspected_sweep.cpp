#include "tests/fuzz/inspected_sweep.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/inspect/event_export.h"
#include "runmanager/inspect/fsck.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/inspect/sweep_status.h"
#include "runmanager/inspect/verify.h"
#include "runmanager/kinds/network/network_kind.h"
#include "runmanager/records/earlier_starts/sweep_changes.h"
#include "runmanager/records/results.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "runmanager/terminal/live_sweep.h"
#include "runmanager/terminal/results_table.h"

namespace fs = std::filesystem;
using namespace sweep;

namespace {

template <typename Read>
void attempt(const Read& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

Dataset no_data(const DatasetSpec&) { throw DataError("there is no data here"); }

void show(const fs::path& directory) {
  const std::vector<RunRecord> runs = list_runs(directory);
  std::vector<std::string> keys;
  for (const RunRecord& run : runs) {
    for (const auto& [key, value] : run.params) keys.push_back(key);
  }
  results_table(runs, keys);
  results_csv(runs, keys);
  results_json(runs, "sweep").dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void show_status(const fs::path& directory) {
  const SweepStatus status = sweep_status(directory);
  status_text(status, {});
  to_json(status).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// As `watch` does while the sweep runs.
void watch(const fs::path& directory) {
  const std::optional<LiveSweep> progress = read_progress(directory);
  if (!progress) return;
  live_table(*progress, {});
  for (const RunRecord& run : progress->latest) ended_line(*progress, run, {});
}

void plan(const fs::path& directory) {
  LoadOptions options;
  options.cuda_device_count = 0;
  const Sweep sweep = load_sweep(directory / "sweep.json", {}, options);
  NetworkKind kind({.load_dataset = no_data,
                    .unavailable_reason = {},
                    .parallel_missing_reason = {},
                    .parse_device = [](std::string_view) { return Device(); }},
                   {});
  const std::vector<ExistingRun> existing =
      find_existing_runs(directory, sweep.runs, kind.identities(), true);
  changes_since(directory, sweep.runs, existing);
  refuse_runs_in_the_way(directory, sweep.runs, existing);
}

void verify(const fs::path& directory) {
  SweepEnvironment environment;
  environment.load_dataset = no_data;
  environment.parse_device = [](std::string_view) { return Device(); };
  environment.unavailable_reason = [](const Device&) { return std::nullopt; };
  environment.stop_requested = [] { return 0; };
  std::ostringstream out;
  environment.out = &out;
  verify_sweep({.directory = directory}, environment);
}

}  // namespace

const fs::path& fuzz_directory() {
  static const TemporaryFolder folder(
      (fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) / "sweep-fuzz-");
  return folder.path();
}

void write_fuzz_file(std::string_view name, std::string_view content) {
  const fs::path file = fuzz_directory() / name;
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
}

void inspect_sweep(const fs::path& directory) {
  attempt([&] { show(directory); });
  attempt([&] { show_status(directory); });
  attempt([&] { watch(directory); });
  attempt([&] {
    const FsckReport report = check_directory(directory);
    fsck_text(report, true);
    fsck_json(report).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  });
  attempt([&] {
    const ExportedLogdir logdir = read_logdir(directory);
    export_csv(logdir);
    export_json(logdir);
    export_markdown(logdir);
  });
  attempt([&] { plan(directory); });
  attempt([&] { verify(directory); });
}
