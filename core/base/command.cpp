#include "core/base/command.h"

#include <signal.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/base/child.h"
#include "core/base/error.h"

namespace sweep {

CommandResult run_command(const std::vector<std::string>& words, const std::function<bool()>& goes_on) {
  constexpr std::size_t kMaxOutputBytes = 64u << 20;
  constexpr std::chrono::milliseconds kTick(100), kToDie(2000);
  CommandResult result;
  // Ctrl-C ends what waits for a command in order, not the command half-way through.
  Child child({.words = words, .group = ChildGroup::kOwn});
  std::optional<ProcessEnd> end = child.end();
  if (end && end->kind == ProcessEnd::Kind::kNotStarted) {
    if (end->value == ENOENT || end->value == EACCES || end->value == ENOTDIR) return result;
    throw IoError("cannot start " + words[0] + ": " + std::strerror(end->value));
  }
  result.started = true;
  const auto take = [&result](std::string_view text, bool is_error) {
    std::string& whole = is_error ? result.err : result.out;
    if (whole.size() < kMaxOutputBytes) whole += text;
  };
  for (; !end && !result.ended; end = child.end()) {
    result.ended = !goes_on();
    if (result.ended) {
      child.kill();
      child.wait_for_end(kToDie);
    } else {
      child.wait(kTick);
    }
    child.read(take);
  }
  child.read(take);
  const ProcessEnd how = end.value_or(ProcessEnd{ProcessEnd::Kind::kSignal, SIGKILL});
  result.code = how.kind == ProcessEnd::Kind::kExit ? how.value : 128 + how.value;
  return result;
}

}  // namespace sweep
