// How a process goes on with a run of a sweep that it shares with others.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "core/network/network.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/training/resume_point.h"

namespace sweep {

/// Copies the events that `point` needs, writes a checkpoint that tells of the copy, which becomes
/// `point.checkpoint`, and removes the other events: what a process that was cut off from the others still
/// appends goes to a file without a name. `id`: RunOwner::id. `check_owner` is called before anything is made
/// and before anything is removed, and may throw. Throws IoError and DataError.
void take_over_run(const std::filesystem::path& run_directory, std::string_view id, const Network& network,
                   const std::function<void()>& check_owner, ResumePoint& point);

}  // namespace sweep
