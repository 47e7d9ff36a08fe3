#include "runmanager/training/text_log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <string>
#include <utility>

#include "core/base/error.h"

namespace sweep {

std::shared_ptr<spdlog::logger> open_text_log(const std::filesystem::path& path, bool truncate) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_st>(path.string(), truncate);
    auto log = std::make_shared<spdlog::logger>("run", std::move(sink));
    log->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
    log->flush_on(spdlog::level::info);
    // A full disk is reported by the files that matter.
    log->set_error_handler([](const std::string&) {});
    return log;
  } catch (const spdlog::spdlog_ex& error) {
    throw IoError(error.what());
  }
}

}  // namespace sweep
