#include "runmanager/training/run_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/training/run_recorder.h"

namespace sweep {

namespace {

// It becomes a directory, whose files of an earlier start are removed.
void check_name(const std::filesystem::path& name) {
  if (!name.empty() && name.is_relative() && name == name.lexically_normal() && name.has_filename() &&
      *name.begin() != ".." && name != "." && name.native().find('\0') == std::string::npos)
    return;
  throw ConfigError(
      fmt::format("a run's name: got \"{}\", want one of a directory below that of all runs, "
                  "as RunBuilder::get_runs() gives it",
                  printable(name.string())));
}

TrainedNetwork checked(const Network* network, const DataLoader* loader) {
  if (loader != nullptr && loader->samples().set == nullptr)
    throw ConfigError("a run's loader has no data set; want that of the training samples");
  return {network, loader};
}

// "runs" of "runs", "runs/" and "runs/.", and the current directory's name of "." and "".
std::string name_of(const std::filesystem::path& directory) {
  const std::filesystem::path whole = std::filesystem::absolute(directory.empty() ? "." : directory) / "";
  return whole.lexically_normal().parent_path().filename().string();
}

// None if there is no such file.
std::optional<RunRecord> read_known_record(const std::filesystem::path& file) {
  std::error_code error;
  const bool exists = std::filesystem::exists(file, error);
  if (error) throw IoError(fmt::format("{}: cannot be looked for: {}", file.string(), error.message()));
  if (!exists) return std::nullopt;
  try {
    return read_run_record(file);
  } catch (const ReadError& unreadable) {
    throw IoError(unreadable.what());  // DataError would say that it is damaged
  }
}

}  // namespace

// Hidden from the installed header, which must not show TensorBoard's writer.
struct RunManager::Runs {
  RecorderOptions recorder_options() const {
    return {.directory = options.directory,
            .clock = options.clock,
            .provenance = options.provenance,
            .survives = Survives::kPowerCut};
  }

  // Calls open(record) with the record of the run of that name, an empty one if there is none so far, which
  // is kept unless it throws. It is valid until another is added.
  template <class Open>
  void open_record(const std::string& name, Open&& open) {
    check_name(name);
    const auto known = std::ranges::find(records, name, &RunRecord::name);
    if (known != records.end()) return open(*known);
    records.emplace_back().name = name;
    try {
      open(records.back());
    } catch (...) {
      records.pop_back();
      throw;
    }
  }

  RunManagerOptions options;
  std::vector<RunRecord> records = {};
  std::unique_ptr<RunRecorder> recorder = {};  // of the open run
};

RunManager::RunManager(RunManagerOptions options) : runs_(new Runs{.options = std::move(options)}) {
  if (!runs_->options.clock) runs_->options.clock = steady_seconds;
  if (runs_->options.name.empty()) runs_->options.name = name_of(runs_->options.directory);
}

RunManager::~RunManager() {
  if (!recorder_) return;
  try {
    end_run(RunStatus::kInterrupted, "the program ended before the run did");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", printable(error.what()));
  }
}

void RunManager::check_ended(const char* call) const {
  if (recorder_)
    throw std::logic_error(fmt::format("RunManager::{}() before end_run() of the last run", call));
}

void RunManager::begin_run(const Run& run, const Network* network, const DataLoader* loader) {
  check_ended("begin_run");
  const TrainedNetwork trained = checked(network, loader);
  runs_->open_record(run.name, [&](RunRecord& record) {
    runs_->recorder = std::make_unique<RunRecorder>(runs_->recorder_options(), run, trained, record);
  });
  recorder_ = runs_->recorder.get();
}

void RunManager::resume_run(const Run& run, std::string_view text, const Network* network,
                            const DataLoader* loader) {
  check_ended("resume_run");
  const TrainedNetwork trained = checked(network, loader);
  const std::string where = "the progress of " + run.name;
  RunProgress progress;
  try {
    const nlohmann::ordered_json json = nlohmann::ordered_json::parse(text);
    progress = {run_record_from_json(json.at("record"), where), run_position_from_json(json)};
  } catch (const nlohmann::json::exception&) {
    throw DataError(where + " is damaged; want what RunManager::progress() returned");
  }
  if (progress.record.name != run.name)
    throw DataError(where + " is that of another run, " + progress.record.name);
  if (progress.record.params != run.params)
    throw DataError(where + " is that of other parameters, " + to_json(progress.record.params).dump());
  runs_->open_record(run.name, [&](RunRecord& record) {
    runs_->recorder =
        std::make_unique<RunRecorder>(runs_->recorder_options(), run, trained, progress, record);
  });
  recorder_ = runs_->recorder.get();
}

std::string RunManager::progress() {
  RunRecorder& recorder = run("progress");
  const nlohmann::ordered_json position = to_json(recorder.position(/*batches=*/0));
  recorder.flush(Survives::kPowerCut);
  nlohmann::ordered_json json = {{"record", to_json(record())}};
  json.update(position);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);  // as in run.json
}

bool RunManager::keep_completed(const Run& run) {
  check_ended("keep_completed");
  check_name(run.name);
  const std::filesystem::path file = runs_->options.directory / run.name / kRunRecordFile;
  std::optional<RunRecord> found = read_known_record(file);
  if (!found) return false;
  RunRecord& record = *found;
  if (record.status != RunStatus::kCompleted || record.params != run.params || record.config != run.config)
    return false;
  runs_->open_record(run.name, [&](RunRecord& kept) { kept = std::move(record); });
  return true;
}

void RunManager::end_run(RunStatus status, std::string_view reason) {
  run("end_run");
  // Moved out, so that the run counts as ended even if its files cannot be written.
  recorder_ = nullptr;
  std::exchange(runs_->recorder, nullptr)->end(status, reason);
}

const std::filesystem::path& RunManager::directory() const { return runs_->options.directory; }
const std::vector<RunRecord>& RunManager::records() const { return runs_->records; }

void RunManager::save(const std::filesystem::path& file) const {
  if (const auto name = file.filename(); name.empty() || name == "." || name == "..")
    throw ConfigError("RunManager::save(): want the name of a file, such as \"results\"");
  const RunManagerOptions& options = runs_->options;
  save_results(options.directory / file, runs_->records, options.name, options.keys, Survives::kPowerCut);
}

}  // namespace sweep
