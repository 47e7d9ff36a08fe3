// Follows a sweep that another process trains.
#pragma once

#include <filesystem>
#include <functional>

#include "runmanager/terminal/terminal.h"

namespace sweep {

struct WatchOptions {
  Terminal terminal;  // where the table is shown, or else lines are written as things happen
  bool json = false;  // a line of JSON per change instead, as to_json(SweepStatus) has it
  std::function<bool()> stop_requested = [] { return false; };
  std::function<void()> wait;  // a part of a second
};

/// Shows the progress of the sweep in `directory` until it ends, or until it is asked to stop; says at last
/// how it ended. One that is not running is only told of. Throws DataError if its files cannot be read.
void watch_sweep(const std::filesystem::path& directory, const WatchOptions& options);

}  // namespace sweep
