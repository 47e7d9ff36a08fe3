// log.txt: what happened in a run, for people.
#pragma once

#include <filesystem>
#include <memory>

namespace spdlog {
class logger;
}

namespace sweep {

/// Opens a log at `path` that writes every line at once. `truncate`: an existing file begins anew. Lines that
/// cannot be written are dropped. Throws IoError if the file cannot be opened.
std::shared_ptr<spdlog::logger> open_text_log(const std::filesystem::path& path, bool truncate);

}  // namespace sweep
