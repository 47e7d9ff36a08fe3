// How an attempt to train a run goes on from the checkpoint of another one that may still live.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "core/network/network.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/training/resume_point.h"

namespace sweep {

/// Makes all that `point` needs this attempt's own: its events, copied; its checkpoint, which then tells of
/// the copy; the best epoch's. Then removes the files of earlier attempts. `point.checkpoint` becomes what
/// the own checkpoint says. `keeps_best`: the run has a best epoch's checkpoint. `attempt`: of this process,
/// "" if it has the sweep for itself and takes over from processes that did not. `check_owner` is called
/// before anything is made and before anything is removed, and may throw. Throws IoError and DataError.
void take_over_run(const std::filesystem::path& run_directory, std::string_view attempt,
                   const Network& network, bool keeps_best, const std::function<void()>& check_owner,
                   ResumePoint& point);

}  // namespace sweep
