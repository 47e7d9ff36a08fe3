// The log.txt of a run. Not part of the installed interface.
#pragma once

#include <spdlog/logger.h>

#include <filesystem>
#include <memory>

namespace sweep {

/// Opens `path` for lines of log; `is_new`: nothing may be there yet. Throws IoError if the file cannot be
/// opened, or is a symbolic link or anything else than a regular file. Lines that cannot be written are lost
/// without an error. The logger is not thread-safe.
std::shared_ptr<spdlog::logger> open_log_file(const std::filesystem::path& path, bool is_new);

}  // namespace sweep
