#include "runmanager/training/resume_point.h"

#include "core/base/error.h"
#include "runmanager/records/identity.h"
#include "runmanager/records/run_files.h"

namespace sweep {

ResumePoint find_resume_point(const PreparedRun& run, const std::filesystem::path& run_directory) {
  const std::filesystem::path file = run_directory / kCheckpointFile;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {};
  try {
    Checkpoint checkpoint = read_checkpoint(file, *run.network);
    if (same_identity(checkpoint.progress.record, *run.config, run.provenance))
      return {.checkpoint = std::move(checkpoint), .problem = ""};
    return {.checkpoint = {}, .problem = "the checkpoint is of a run with other settings"};
  } catch (const DataError& damaged) {
    return {.checkpoint = {}, .problem = damaged.what()};
  }
}

}  // namespace sweep
