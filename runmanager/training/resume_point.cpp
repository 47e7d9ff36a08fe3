#include "runmanager/training/resume_point.h"

#include "core/base/error.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_identity.h"

namespace sweep {

ResumePoint find_resume_point(const PreparedRun& run, const std::filesystem::path& run_directory) {
  const std::filesystem::path file = run_directory / kCheckpointFile;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {};
  try {
    Checkpoint checkpoint = read_checkpoint(file, *run.network);
    const RunRecord& record = checkpoint.progress.record;
    const std::vector<SettingDifference> different =
        differences(identity_of(record.config, record.device, record.provenance),
                    identity_of(run.config->resolved, run.device.name(), run.provenance));
    if (different.empty()) return {.checkpoint = std::move(checkpoint), .problem = ""};
    return {.checkpoint = {},
            .problem = "the checkpoint is of a run with other settings: " + to_string(different)};
  } catch (const DataError& damaged) {
    return {.checkpoint = {}, .problem = damaged.what()};
  }
}

}  // namespace sweep
