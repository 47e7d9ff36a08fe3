#include "runmanager/import/import_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/config/params.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/records/sweep_directory.h"
#include "runmanager/sweep/sweep_json.h"
#include "runmanager/tensorboard/run_log.h"
#include "tbwriter/event_reader.h"
#include "tbwriter/summary_writer.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

RunStatus status_of(const ForeignRun& run) {
  return run.status == tbwriter::SessionStatus::kFailure ? RunStatus::kFailed : RunStatus::kCompleted;
}

RunRecord record_of(const ForeignRun& run, std::string name, const Json& program, const fs::path& source) {
  RunRecord record;
  record.name = std::move(name);
  record.status = status_of(run);
  record.params = run.params;
  ReportHistory history([](std::int64_t, const EpochRecord&) {});
  for (std::size_t i = 0; i < run.reports.size(); ++i) {
    MetricReport report = run.reports[i];
    if (i > 0) report.seconds = report.wall_time - run.reports[0].wall_time;
    history.add(std::move(report));
  }
  record.epochs = history.epochs();
  for (const auto& [metric, value] : run.metrics)
    record.metrics[std::string(metric_called(metric).key)] = value;
  if (!run.reports.empty()) {
    const auto [first, last] = std::ranges::minmax_element(run.reports, {}, &MetricReport::wall_time);
    const double begin = first->wall_time, end = last->wall_time;
    record.started = utc_time(static_cast<std::time_t>(begin));
    record.ended = utc_time(static_cast<std::time_t>(end));
    record.run_seconds = end - begin;
  }
  if (record.status == RunStatus::kFailed) record.error = "its hparams session says that it failed";
  record.provenance = program;
  record.provenance["imported"] = fs::absolute(source / run.name).lexically_normal().string();
  return record;
}

// Copies the whole records of a file: nobody will write the rest of the last one.
void copy_events(const fs::path& from, const fs::path& to) {
  const tbwriter::FileCheck check = tbwriter::check_events_file(from);
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  if (!error) fs::copy_file(from, to, error);
  if (!error) fs::permissions(to, fs::perms::owner_write, fs::perm_options::add, error);
  const bool is_torn = check.end == tbwriter::ReadEnd::kTornTail || check.end == tbwriter::ReadEnd::kZeroTail;
  if (!error && is_torn) fs::resize_file(to, check.bytes, error);
  if (error) throw_io(from, "cannot copy it to " + to.string(), error.value());
}

// What TensorBoard does not find in the run's own files.
void add_events(const fs::path& directory, const ForeignRun& run) {
  tbwriter::WriterOptions options;
  options.locks_directory = options.end_session_on_close = false;
  options.purge_step = (std::int64_t{1} << 31);  // Above all steps, so that no point of the others is void.
  tbwriter::SummaryWriter writer(directory, options);
  writer.add_hparams_start(to_hparams(run.params));
  ReportHistory history([&](std::int64_t step, const EpochRecord& record) {
    const auto points = epoch_points(history.not_in_events(step, record));
    if (!points.empty()) writer.add_scalar_batch(points, step);
  });
  for (const MetricReport& report : run.reports) history.add(report);
  history.close();
  writer.add_hparams_end(status_of(run) == RunStatus::kFailed ? tbwriter::SessionStatus::kFailure
                                                              : tbwriter::SessionStatus::kSuccess);
  writer.close();
}

fs::path below_run(const ForeignRun& run, const fs::path& file) {
  return run.name == "." ? file : file.lexically_relative(run.name);
}

fs::path checked_target(const ImportOptions& options, const std::string& name) {
  const fs::path target = options.logdir / name;
  if (name.empty() || name.starts_with('.') || name.find('/') != std::string::npos)
    throw ConfigError(fmt::format("--name \"{}\": want the name of a directory", name));
  std::error_code error;
  if (fs::exists(target, error))
    throw ConfigError(
        fmt::format("{}: is there already; --name gives the sweep another name", target.string()));
  const fs::path way =
      fs::weakly_canonical(target, error).lexically_relative(fs::weakly_canonical(options.source, error));
  if (!way.empty() && *way.begin() != "..")
    throw ConfigError(fmt::format("{}: would be made below {}, in which nothing is changed; give --logdir",
                                  target.string(), options.source.string()));
  return target;
}

void write_sweep(const fs::path& directory, const ImportOptions& options, const ForeignRuns& found) {
  const Json program = program_provenance(options.command);
  std::vector<Params> params;
  for (const ForeignRun& run : found.runs) params.push_back(run.params);
  const std::vector<std::string> names = run_names(params);
  Sweep sweep;
  sweep.name = directory.filename().string();
  sweep.file = fs::absolute(options.source).lexically_normal();
  sweep.resolved = {{"name", sweep.name}, {"imported", sweep.file.string()}};
  std::vector<RunRecord> records;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const ForeignRun& run = found.runs[i];
    RunRecord record = record_of(run, names[i], program, options.source);
    for (const fs::path& file : run.files)
      copy_events(options.source / file, directory / record.name / below_run(run, file));
    if (!run.has_session) add_events(directory / record.name, run);
    record.event_files = event_file_sizes(directory / record.name);
    write_file_atomically(directory / record.name / kRunRecordFile, run_record_text(record));
    sweep.runs.emplace_back().name = record.name;
    records.push_back(std::move(record));
  }
  sweep.keys = param_keys(records);
  write_file_atomically(directory / kSweepFile, sweep_file_text(sweep, program));
  save_results(directory / kResults, records, sweep.name, sweep.keys, Survives::kPowerCut);
}

}  // namespace

ImportedSweep import_sweep(const ImportOptions& options) {
  ForeignRuns found = read_foreign_runs(options.source);
  const std::string own_name = fs::weakly_canonical(options.source).filename().string();
  const fs::path target = checked_target(options, options.name.empty() ? own_name : options.name);
  const SweepDirectory directory = SweepDirectory::open(options.logdir, target.filename().string(), false);
  try {
    write_sweep(directory.path(), options, found);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(directory.path(), ignored);
    throw;
  }
  return {.directory = directory.path(), .runs = found.runs.size(), .remarks = std::move(found.remarks)};
}

}  // namespace sweep
