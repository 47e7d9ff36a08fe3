#include "runmanager/inference/trained_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/records/judge.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The SHA-256 of the data's files, in their order.
std::vector<std::string> digests_of(const Json& dataset) {
  std::vector<std::string> digests;
  if (!dataset.is_object()) return digests;
  for (const Json& file : dataset.value("files", Json::array())) {
    if (file.is_object() && file.contains("sha256")) digests.push_back(file["sha256"].dump());
  }
  return digests;
}

SampleFormat recorded_samples(const RecordedRun& run) {
  const Json& provenance = run.record.provenance;
  const std::string where = (run.directory / kRunRecordFile).string();
  if (provenance.contains("input")) return sample_format_from_json(provenance["input"], where);
  try {
    return load_dataset(run.config.dataset);
  } catch (const DataError& error) {
    throw DataError(fmt::format(
        "{}: an earlier version trained this run and did not record what its samples are, and its data set "
        "cannot be read: {}",
        where, error.what()));
  }
}

fs::path only_completed_run(const fs::path& directory) {
  RecordedSweep sweep = read_sweep(directory);
  std::vector<RunRecord>& runs = sweep.runs;
  std::erase_if(runs, [](const RunRecord& run) { return run.status != RunStatus::kCompleted; });
  if (runs.empty())
    throw DataError(fmt::format("{}: has no completed run; name one of its runs", directory.string()));
  if (runs.size() == 1) return directory / runs.front().name;
  const Goals goals = goals_of(sweep);
  const std::optional<std::size_t> best = best_run(runs, goals);
  throw DataError(fmt::format("{}: has {} completed runs: name one of them{}", directory.string(),
                              runs.size(),
                              best ? fmt::format(". The one with the {} is {}", goal_text(goals),
                                                 (directory / runs[*best].name).string())
                                   : ""));
}

fs::path find_run(const fs::path& path) {
  fs::path directory = path.filename() == kRunRecordFile ? directory_of(path) : path;
  std::error_code error;
  if (fs::exists(directory / kRunRecordFile, error)) return directory;
  if (has_runs(directory)) return only_completed_run(directory);
  refuse_directory(path, "is no directory of a run",
                   fmt::format("the directory of a run, runs/NAME/RUN, which has a {}", kRunRecordFile));
}

}  // namespace

RecordedRun read_run(const fs::path& path, const fs::path& data) {
  RecordedRun run;
  run.directory = find_run(path);
  run.record = read_run_record(run.directory / kRunRecordFile);
  if (!run.record.config.is_object() || !run.record.config.contains("network")) {
    throw DataError(fmt::format("{}: was trained by another program, so its network is not recorded",
                                run.directory.string()));
  }
  run.config = recorded_config(run.record);
  resolve_paths(run.config, run.record);
  if (!data.empty()) {
    run.config.dataset.path = data;
    run.config.dataset.encoding.reset();  // Another file may be written in another one.
  }
  run.samples = recorded_samples(run);
  run.network = std::make_shared<const Network>(run.config.network, run.samples.shape);
  return run;
}

LoadedRun load_run(const fs::path& path, std::optional<WhichWeights> which, const fs::path& data) {
  LoadedRun run{read_run(path, data), {}, {}};
  std::error_code error;
  const bool has_best = fs::exists(run.directory / kBestFile, error);
  const bool best = which ? *which == WhichWeights::kBest : has_best && keeps_best(run.config);
  run.weights_file = run.directory / (best ? kBestFile : kCheckpointFile);
  if (!fs::exists(run.weights_file, error)) {
    throw DataError(
        fmt::format("{}: {}", run.weights_file.string(),
                    best ? "is not there: best weights are kept by runs with \"checkpoint\": \"best\""
                         : fmt::format("is not there, so there are no weights; status of the run: {}",
                                       to_string(run.record.status))));
  }
  Checkpoint checkpoint = read_checkpoint(run.weights_file, *run.network);
  run.weights = std::move(checkpoint.state.weights);
  const std::vector<EpochRecord>& epochs = checkpoint.progress.record.epochs;
  if (!epochs.empty()) run.epoch = epochs.back().epoch;
  return run;
}

Dataset load_data_of(const RecordedRun& run, bool& changed) {
  Dataset data = load_dataset_for(run.samples, run.config.dataset);
  const std::vector<std::string> before = digests_of(run.record.provenance.value("dataset", Json::object()));
  changed = !before.empty() && before != digests_of(dataset_provenance(data));
  return data;
}

std::string run_text(const LoadedRun& run) {
  const bool is_best = run.weights_file.filename() == kBestFile;
  const RunStatus status = run.record.status;
  return fmt::format("{}: weights of epoch {}{}{}", run.directory.string(), run.epoch,
                     is_best ? ", the best one" : "",
                     status == RunStatus::kCompleted ? "" : fmt::format(" ({})", to_string(status)));
}

}  // namespace sweep
