#include "runmanager/training/log_file.h"

#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "core/base/file.h"

namespace sweep {
namespace {

// Writes every line at once. spdlog's own file sink would follow a link.
class LogSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit LogSink(FileDescriptor file) : file_(std::move(file)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    for (std::string_view rest(line.data(), line.size()); !rest.empty();) {
      const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;  // A full disk is reported by the files that matter.
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  void flush_() override {}

 private:
  FileDescriptor file_;
};

}  // namespace

std::shared_ptr<spdlog::logger> open_log_file(const std::filesystem::path& path, bool is_new) {
  auto sink =
      std::make_shared<LogSink>(open_output_file(path, is_new ? OutputMode::kNew : OutputMode::kAppend));
  auto log = std::make_shared<spdlog::logger>("run", std::move(sink));
  log->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  log->set_error_handler([](const std::string&) {});
  return log;
}

}  // namespace sweep
