#include "core/base/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/retry.h"
#include "core/base/spawn.h"

namespace sweep {
namespace {

constexpr std::size_t kMaxOutputBytes = 64u << 20;
constexpr int kTickMilliseconds = 100, kWaitMilliseconds = 2;

struct Pipe {
  FileDescriptor read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw IoError(std::string("cannot make a pipe: ") + std::strerror(errno));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// A program that was started, in a process group of its own. Its destructor ends it.
class Process {
 public:
  explicit Process(pid_t pid) : pid_(pid) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() { end(); }

  bool has_ended() {
    waited_for_ = waited_for_ || retry_interrupted([&] { return ::waitpid(pid_, &status_, WNOHANG); }) != 0;
    return waited_for_;
  }
  /// Kills it if it still runs. Returns its exit code.
  int end() {
    if (!has_ended()) {
      ::kill(-pid_, SIGKILL);
      retry_interrupted([&] { return ::waitpid(pid_, &status_, 0); });
      waited_for_ = true;
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }

 private:
  pid_t pid_;
  int status_ = 0;
  bool waited_for_ = false;
};

// Reads both pipes until their ends. Returns false if `goes_on` did before.
bool read_both(const Pipe& out, const Pipe& err, const std::function<bool()>& goes_on,
               CommandResult& result) {
  std::array<pollfd, 2> polled{{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
  const std::array<std::string*, 2> texts = {&result.out, &result.err};
  std::array<char, 1 << 14> part;
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    if (!goes_on()) return false;
    if (::poll(polled.data(), polled.size(), kTickMilliseconds) <= 0) continue;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      const ssize_t count = retry_interrupted([&] { return ::read(polled[i].fd, part.data(), part.size()); });
      if (count <= 0) polled[i].fd = -1;  // which poll() passes over
      if (count > 0 && texts[i]->size() < kMaxOutputBytes)
        texts[i]->append(part.data(), static_cast<std::size_t>(count));
    }
  }
  return true;
}

// Returns false if `goes_on` did before the process ended.
bool wait_for_end(Process& process, const std::function<bool()>& goes_on) {
  while (!process.has_ended()) {
    if (!goes_on()) return false;
    ::poll(nullptr, 0, kWaitMilliseconds);
  }
  return true;
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& words, const std::function<bool()>& goes_on) {
  CommandResult result;
  Pipe out = make_pipe(), err = make_pipe();
  Spawn spawn;
  spawn.give(out.write.get(), STDOUT_FILENO);
  spawn.give(err.write.get(), STDERR_FILENO);
  // Ctrl-C ends what waits for a command in order, not the command half-way through.
  spawn.in_own_group();
  pid_t pid = 0;
  const int error = spawn.start(words, pid);
  if (error == ENOENT || error == EACCES || error == ENOTDIR) return result;
  if (error != 0) throw IoError("cannot start " + words[0] + ": " + std::strerror(error));
  result.started = true;
  Process process(pid);
  ::close(out.write.release());
  ::close(err.write.release());
  result.ended = !read_both(out, err, goes_on, result) || !wait_for_end(process, goes_on);
  result.code = process.end();
  return result;
}

}  // namespace sweep
