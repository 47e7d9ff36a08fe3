#include "core/base/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/threads.h"

namespace sweep {
namespace {

// All that is left to a child of a process with threads: no memory is allocated after fork().
struct Image {
  char* const* words;
  char* const* environment;
  const char* directory;  // nullptr: that of the parent
  bool has_own_group;
  bool has_own_signals;  // else too large a file is an error of write(), as in this process
  int output, errors;
  const std::vector<int>* inherited;
  int failure;      // where a program that cannot be started says so
  int descriptors;  // for a keeper: all that are open are less
};

struct Failure {
  int error;  // an errno
  bool cwd;
};

constexpr int kFirstOther = 3;  // the first descriptor after the standard streams

// Tells a keeper to kill all. Nobody sends it to a process group, as terminals send SIGHUP and schedulers of
// clusters SIGUSR1.
int end_signal() { return SIGRTMIN; }

[[noreturn]] void fail(const Image& image, bool cwd) {
  const Failure failure{errno, cwd};
  // A parent that is gone reads nothing.
  [[maybe_unused]] const ssize_t written = ::write(image.failure, &failure, sizeof failure);
  ::_exit(1);
}

[[noreturn]] void become_program(const Image& image, pid_t parent) {
  if (image.has_own_group) ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // It died before prctl() took effect.
  for (int signal = 1; signal < SIGRTMIN; ++signal)
    if (signal != SIGXFSZ || image.has_own_signals) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  ::dup2(image.output, STDOUT_FILENO);
  ::dup2(image.errors, STDERR_FILENO);
  if (image.directory != nullptr && ::chdir(image.directory) != 0) fail(image, true);
  // Old kernels lack it.
  if (::close_range(kFirstOther, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
    for (int fd = kFirstOther; fd < 1024; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  for (const int fd : *image.inherited) ::fcntl(fd, F_SETFD, 0);
  ::execvpe(image.words[0], image.words, image.environment);
  fail(image, false);
}

// Kills the children of this process until there are none. Those of a killed child become this process's.
void kill_descendants(pid_t group) {
  ::kill(-group, SIGKILL);
  std::array<char, 4096> text{};
  for (;;) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const int fd = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    const ssize_t size = fd >= 0 ? ::read(fd, text.data(), text.size() - 1) : 0;
    if (fd >= 0) ::close(fd);
    if (size <= 0) return;
    text[static_cast<std::size_t>(size)] = '\0';
    for (char* at = text.data(); *at != '\0';) {
      char* next = nullptr;
      const long child = std::strtol(at, &next, 10);
      // The last number may be cut.
      const bool is_whole = *next == ' ';
      if (next == at) break;
      if (is_whole) ::kill(static_cast<pid_t>(child), SIGKILL);
      at = next + (is_whole ? 1 : 0);
    }
    if (::waitpid(-1, nullptr, 0) < 0 && errno != EINTR) return;
  }
}

// Waits for the program's end or for a signal to end it. Returns its status.
int await_end(pid_t program, const sigset_t& awaited) {
  for (int status = 0;;) {
    siginfo_t info;
    const int signal = ::sigwaitinfo(&awaited, &info);
    if (signal == SIGTERM) ::kill(-program, SIGTERM);
    if (signal == SIGTERM) ::kill(-program, SIGCONT);
    if (signal == end_signal()) {
      ::kill(program, SIGKILL);
      ::waitpid(program, &status, 0);
      return status;
    }
    for (pid_t ended = 1; signal == SIGCHLD && ended > 0;) {
      ended = ::waitpid(-1, &status, WNOHANG);
      if (ended == program) return status;
    }
  }
}

[[noreturn]] void end_as(int status) {
  if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  ::prctl(PR_SET_DUMPABLE, 0);  // One core file is enough.
  ::signal(WTERMSIG(status), SIG_DFL);
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, WTERMSIG(status));
  ::raise(WTERMSIG(status));
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  ::_exit(1);
}

// Starts the program and ends as it does, once none of its processes is left. Its output stays open until
// then.
[[noreturn]] void keep(const Image& image, pid_t parent) {
  sigset_t awaited;
  ::sigemptyset(&awaited);
  for (const int signal : {SIGCHLD, SIGTERM, end_signal()}) {
    ::sigaddset(&awaited, signal);
    ::signal(signal, SIG_DFL);  // An ignored signal would not be waited for.
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG, end_signal());
  if (::getppid() != parent) ::_exit(1);
  const pid_t keeper = ::getpid();
  // NOLINTNEXTLINE(clang-analyzer-unix.Vfork,clang-analyzer-security.insecureAPI.vfork): it becomes a program
  const pid_t program = ::vfork();
  if (program == 0) become_program(image, keeper);
  if (program < 0) fail(image, false);
  ::setpgid(program, program);
  ::close(image.failure);
  // A sweep notices the end of the worker by its socket. The lock of the directory stays with the keeper.
  for (int fd = kFirstOther; fd < image.descriptors; ++fd) {
    struct stat what {};
    if (::fstat(fd, &what) == 0 && S_ISSOCK(what.st_mode)) ::close(fd);
  }
  const int status = await_end(program, awaited);
  kill_descendants(program);
  end_as(status);
}

struct Pipe {
  FileDescriptor reader, writer;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw IoError(std::string("cannot make a pipe: ") + std::strerror(errno));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// Returns one more than the highest descriptor that is open; without /proc the usual limit of descriptors.
int descriptors_end() {
  constexpr int kDefaultLimit = 1024;
  int end = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    end = std::max(end, std::atoi(entry->path().filename().c_str()) + 1);
  return error ? kDefaultLimit : end;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  list.reserve(words.size() + 1);
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

// Returns the child's id, or -1. Only a keeper runs on after fork(), so that others need no copy of the
// memory, which MPI would warn of.
pid_t start_process(const Image& image, bool is_kept) {
  const BlockSignals until_the_child_has_its_own;
  const pid_t parent = ::getpid();
  // NOLINTNEXTLINE(clang-analyzer-unix.Vfork,clang-analyzer-security.insecureAPI.vfork): it becomes a program
  const pid_t child = is_kept ? ::fork() : ::vfork();
  if (child != 0) return child;
  if (is_kept) keep(image, parent);
  become_program(image, parent);
}

}  // namespace

// The C library's names lack the prefix.
std::string name_of_signal(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::string killed_by(int signal) {
  const char* const hint = signal == SIGKILL ? " (by hand, or by the kernel for want of memory)" : "";
  return "killed by " + name_of_signal(signal) + hint;
}

Child::Child(const ChildStart& start) : group_(start.group) {
  std::vector<FileDescriptor> writers;
  for (int stream = 0; stream < 2 && start.captures_output; ++stream) {
    Pipe pipe = make_pipe();
    ::fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK);
    readers_.push_back(std::move(pipe.reader));
    writers.push_back(std::move(pipe.writer));
  }
  Pipe failures = make_pipe();
  std::vector<char*> variables;
  if (start.environment) variables = pointers(*start.environment);
  const std::vector<char*> words = pointers(start.words);
  const Image image{.words = words.data(),
                    .environment = start.environment ? variables.data() : environ,
                    .directory = start.directory.empty() ? nullptr : start.directory.c_str(),
                    .has_own_group = group_ != ChildGroup::kParents,
                    .has_own_signals = group_ == ChildGroup::kKept,
                    .output = start.captures_output ? writers[0].get() : STDERR_FILENO,
                    .errors = start.captures_output ? writers[1].get() : STDERR_FILENO,
                    .inherited = &start.inherited,
                    .failure = failures.writer.get(),
                    .descriptors = group_ == ChildGroup::kKept ? descriptors_end() : 0};
  pid_ = start_process(image, group_ == ChildGroup::kKept);
  if (pid_ < 0) throw IoError("cannot start " + start.words[0] + ": " + std::strerror(errno));
  ::close(failures.writer.release());
  Failure failure{};
  const auto read = [&] { return ::read(failures.reader.get(), &failure, sizeof failure); };
  if (retry_interrupted(read) != sizeof failure) return;  // It was closed when the program began.
  retry_interrupted([this] { return ::waitpid(pid_, nullptr, 0); });
  end_ = {.kind = ProcessEnd::Kind::kNotStarted, .value = failure.error, .cwd = failure.cwd};
}

Child::~Child() {
  constexpr std::chrono::seconds kLimit(2);
  kill();
  wait_for_end(kLimit);
}

void Child::wait(std::chrono::milliseconds limit) const {
  std::vector<pollfd> ready;
  for (const FileDescriptor& reader : readers_) {
    if (reader.get() >= 0) ready.push_back({reader.get(), POLLIN, 0});
  }
  constexpr std::chrono::milliseconds kPause(2);
  if (ready.empty()) limit = std::min(limit, kPause);
  ::poll(ready.data(), ready.size(), static_cast<int>(limit.count()));
}

void Child::read(const std::function<void(std::string_view text, bool is_error)>& use) {
  std::array<char, 1 << 16> part;
  for (FileDescriptor& reader : readers_) {
    // Not for ever, should the program be faster.
    for (int parts = 0; parts < 64; ++parts) {
      const ssize_t size = retry_interrupted([&] { return ::read(reader.get(), part.data(), part.size()); });
      if (size == 0) ::close(reader.release());
      if (size <= 0) break;
      use({part.data(), static_cast<std::size_t>(size)}, &reader != readers_.data());
    }
  }
}

std::optional<ProcessEnd> Child::end() {
  if (end_) return end_;
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return std::nullopt;
  if (ended < 0) status = SIGKILL;  // Nothing is known of it.
  if (WIFEXITED(status))
    end_ = {.kind = ProcessEnd::Kind::kExit, .value = WEXITSTATUS(status)};
  else
    end_ = {.kind = ProcessEnd::Kind::kSignal, .value = WTERMSIG(status)};
  return end_;
}

std::optional<ProcessEnd> Child::wait_for_end(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!end() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return end_;
}

void Child::stop(double now, double grace) {
  if (end_) return;
  if (!asked_) {
    asked_ = now;
    ::kill(target(), SIGTERM);
  } else if (now - *asked_ >= grace) {
    kill();
  }
}

bool Child::kill() const {
  return end_ || ::kill(target(), group_ == ChildGroup::kKept ? end_signal() : SIGKILL) == 0;
}

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
