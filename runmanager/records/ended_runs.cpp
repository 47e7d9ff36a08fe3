#include "runmanager/records/ended_runs.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/records/sweep_directory.h"
#include "tbwriter/event_file_name.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

void give_name(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::exists(from, error)) return;
  try {
    link_file_atomically(from, to);
  } catch (const IoError&) {
    // Another process, which does the same, has removed it: it has the other name then.
    if (fs::exists(from, error)) throw;
  }
}

void remove_files_of_attempts(const fs::path& directory) {
  std::error_code ignored;
  for (const std::string& attempt : attempts_in(directory)) {
    const CheckpointNames names = checkpoint_names(attempt);
    for (const std::string& file : {names.newest, names.previous, names.best})
      fs::remove(directory / file, ignored);
  }
}

// An attempt that was taken over from may have made an events file since.
void remove_strange_events(const fs::path& directory, const RunRecord& record) {
  if (record.event_files.empty()) return;
  for (const std::string& file : tbwriter::list_event_files(directory)) {
    std::error_code ignored;
    if (tbwriter::is_event_file_name(file) && !record.event_files.contains(file))
      fs::remove(directory / file, ignored);
  }
}

}  // namespace

RunRecord place_ended_run(const fs::path& sweep_directory, const ChainEnd& end) {
  RunRecord record = parse_run_record(end.content, "the end of a run");
  const fs::path directory = sweep_directory / record.name;
  std::error_code error;
  fs::create_directory(directory, error);
  if (error)
    throw IoError(fmt::format("{}: cannot make this directory: {}", directory.string(), error.message()));
  const CheckpointNames names = checkpoint_names(end.attempt);
  if (fs::exists(directory / names.newest, error)) {
    if (!fs::exists(directory / names.best, error)) fs::remove(directory / kBestFile, error);
    fs::remove(directory / kPreviousCheckpointFile, error);
  }
  give_name(directory / names.best, directory / kBestFile);
  give_name(directory / names.newest, directory / kCheckpointFile);
  remove_strange_events(directory, record);
  write_file_atomically(directory / kRunRecordFile, end.content, Survives::kKill);
  remove_files_of_attempts(directory);
  return record;
}

fs::path claims_of_runs(const fs::path& sweep_directory) { return sweep_directory / kClaimsFolder / "runs"; }

bool settle_run(const fs::path& sweep_directory, ClaimChains& chains, const std::string& run) {
  try {
    if (const std::optional<ChainEnd> end = chains.read_end(run)) {
      place_ended_run(sweep_directory, *end);
      chains.settle(run);
      return false;
    }
  } catch (const DataError&) {
  }
  chains.reopen(run);
  return true;
}

void settle_claims(const fs::path& sweep_directory) {
  std::error_code error;
  if (!fs::exists(claims_of_runs(sweep_directory), error)) return;
  Member here(SweepDirectory::members_folder(sweep_directory), this_process());
  ClaimChains chains(claims_of_runs(sweep_directory), here);
  chains.remove_temporaries();
  chains.refresh();
  for (const std::string& run : chains.names()) {
    chains.look_at(run);
    if (chains.is_unsettled(run)) settle_run(sweep_directory, chains, run);
    if (chains.state(run) == ChainState::kOwned) chains.reopen(run);
  }
}

}  // namespace sweep
