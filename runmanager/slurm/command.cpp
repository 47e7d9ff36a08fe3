#include "runmanager/slurm/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/spawn.h"

namespace sweep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostOutput = 64u << 20;

struct Pipe {
  FileDescriptor read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw IoError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// Reads both pipes until their ends. Returns false if `end` came first.
bool read_both(const Pipe& out, const Pipe& err, Clock::time_point end, CommandResult& result) {
  struct Stream {
    int fd;
    std::string* text;
  };
  std::vector<Stream> streams = {{out.read.get(), &result.out}, {err.read.get(), &result.err}};
  std::array<char, 1 << 14> part;
  while (!streams.empty()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    std::vector<pollfd> polled;
    polled.reserve(streams.size());
    for (const Stream& stream : streams) polled.push_back({.fd = stream.fd, .events = POLLIN, .revents = 0});
    if (::poll(polled.data(), polled.size(), static_cast<int>(std::min<long long>(left, 1000))) <= 0)
      continue;
    for (std::size_t i = polled.size(); i-- > 0;) {
      if (polled[i].revents == 0) continue;
      const ssize_t count = ::read(polled[i].fd, part.data(), part.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(i));
      } else if (streams[i].text->size() < kMostOutput) {
        streams[i].text->append(part.data(), static_cast<std::size_t>(count));
      }
    }
  }
  return true;
}

// Waits for the process; what is still there at `end` is killed. Returns its wait status.
int wait_for(pid_t pid, Clock::time_point end, bool& timed_out) {
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid || (ended < 0 && errno != EINTR)) return status;
    if (Clock::now() >= end) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  timed_out = true;
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& words, std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  CommandResult result;
  pid_t pid = 0;
  Pipe out = make_pipe(), err = make_pipe();
  Spawn spawn;
  spawn.give(out.write.get(), STDOUT_FILENO);
  spawn.give(err.write.get(), STDERR_FILENO);
  // Ctrl-C ends what waits for a command in order, not the command half-way through.
  spawn.in_own_group();
  const int error = spawn.start(words, pid);
  if (error == ENOENT || error == EACCES || error == ENOTDIR) return result;
  if (error != 0) throw IoError(fmt::format("cannot start {}: {}", words[0], std::strerror(error)));
  result.started = true;
  ::close(out.write.release());
  ::close(err.write.release());
  const bool complete = read_both(out, err, end, result);
  const int status = wait_for(pid, complete ? end : Clock::now(), result.timed_out);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace sweep
