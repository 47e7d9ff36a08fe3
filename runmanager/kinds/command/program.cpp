#include "runmanager/kinds/command/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"

namespace sweep {
namespace {

// What the keeper writes when it is done; a program that cannot be started writes it itself.
struct Report {
  enum Kind : int { kStatus, kBadDirectory, kBadProgram } kind;
  int value;  // a status of waitpid(), or an errno
};

// All that fork() leaves to a child of a process with threads: no memory is allocated after it.
struct Image {
  char* const* words;
  char* const* environment;
  const char* directory;
  int input, output, errors, status;
};

constexpr int kFirstOther = 3;  // descriptor behind the standard streams

void report(int fd, Report::Kind kind, int value) {
  const Report what{kind, value};
  // A parent that is gone reads nothing.
  [[maybe_unused]] const ssize_t written = ::write(fd, &what, sizeof what);
}

[[noreturn]] void become_program(const Image& image) {
  ::setpgid(0, 0);
  // Should somebody kill the keeper.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int signal = 1; signal < SIGRTMIN; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(image.input, STDIN_FILENO);
  ::dup2(image.output, STDOUT_FILENO);
  ::dup2(image.errors, STDERR_FILENO);
  if (::chdir(image.directory) != 0) {
    report(image.status, Report::kBadDirectory, errno);
    ::_exit(1);
  }
  // Old kernels lack it.
  if (::close_range(kFirstOther, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
    for (int fd = kFirstOther; fd < 1024; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::execvpe(image.words[0], image.words, image.environment);
  report(image.status, Report::kBadProgram, errno);
  ::_exit(1);
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

sigset_t keeper_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGCHLD, SIGTERM, SIGHUP, SIGUSR1}) ::sigaddset(&signals, signal);
  return signals;
}

// The keeper: starts the program, waits for its end or for a signal, and leaves nothing of it.
[[noreturn]] void keep(const Image& image, pid_t worker) {
  const sigset_t awaited = keeper_signals();
  // An ignored signal would not be waited for.
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1}) ::signal(signal, SIG_DFL);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG, SIGHUP);
  if (::getppid() != worker) ::_exit(1);
  const pid_t program = ::fork();
  if (program == 0) become_program(image);
  if (program < 0) {
    report(image.status, Report::kBadProgram, errno);
    ::_exit(1);
  }
  ::setpgid(program, program);
  ::close(image.output);
  ::close(image.errors);
  // The sweep notices the end of the worker by its socket. The lock of the directory stays with the keeper.
  for (int fd = kFirstOther; fd < 1024; ++fd) {
    struct stat what {};
    if (::fstat(fd, &what) == 0 && S_ISSOCK(what.st_mode)) ::close(fd);
  }
  int status = 0;
  for (bool runs = true; runs;) {
    siginfo_t info;
    const int signal = ::sigwaitinfo(&awaited, &info);
    if (signal == SIGTERM) ::kill(-program, SIGTERM);
    if (signal == SIGTERM) ::kill(-program, SIGCONT);
    if (signal == SIGHUP || signal == SIGUSR1) {
      ::kill(program, SIGKILL);
      ::waitpid(program, &status, 0);
      runs = false;
    }
    int ended = 0;
    while (signal == SIGCHLD && runs) {
      const pid_t child = ::waitpid(-1, &ended, WNOHANG);
      if (child <= 0) break;
      if (child != program) continue;
      status = ended;
      runs = false;
    }
  }
  kill_descendants(program);
  report(image.status, Report::kStatus, status);
  ::_exit(0);
}

// Writing ends are closed as soon as the program has them.
Program::Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw IoError(fmt::format("cannot make a pipe to a program: {}", std::strerror(errno)));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {FileDescriptor(ends[0]), ends[1]};
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  list.reserve(words.size() + 1);
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

}  // namespace

Program::Program(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                 const std::filesystem::path& directory)
    : output_(make_pipe()), errors_(make_pipe()), status_(make_pipe()) {
  const FileDescriptor input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<char*> arguments = pointers(words), variables = pointers(environment);
  const Image image{.words = arguments.data(),
                    .environment = variables.data(),
                    .directory = directory.c_str(),
                    .input = input.get(),
                    .output = output_.writer,
                    .errors = errors_.writer,
                    .status = status_.writer};
  const pid_t worker = ::getpid();
  // So that none that comes before the keeper waits for it is lost.
  sigset_t earlier;
  const sigset_t awaited = keeper_signals();
  ::pthread_sigmask(SIG_BLOCK, &awaited, &earlier);
  keeper_ = ::fork();
  if (keeper_ == 0) keep(image, worker);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &earlier, nullptr);
  for (const Pipe* pipe : {&output_, &errors_, &status_}) ::close(pipe->writer);
  if (keeper_ < 0) throw IoError(fmt::format("cannot start a program: {}", std::strerror(error)));
}

Program::~Program() {
  kill();
  if (!end_) ::waitpid(keeper_, nullptr, 0);
}

void Program::request_end() const {
  if (!end_) ::kill(keeper_, SIGTERM);
}

void Program::kill() const {
  if (!end_) ::kill(keeper_, SIGUSR1);
}

std::optional<ProgramEnd> Program::end() {
  if (end_) return end_;
  int keeper_status = 0;
  if (::waitpid(keeper_, &keeper_status, WNOHANG) != keeper_) return std::nullopt;
  // If somebody has killed the keeper, there is no report.
  end_ = {.kind = ProgramEnd::Kind::kSignal, .value = SIGKILL};
  Report first{};
  if (::read(status_.reader.get(), &first, sizeof first) != sizeof first) return end_;
  if (first.kind != Report::kStatus)
    end_ = {.kind = ProgramEnd::Kind::kNotStarted,
            .value = first.value,
            .cwd = first.kind == Report::kBadDirectory};
  else if (WIFEXITED(first.value))
    end_ = {.kind = ProgramEnd::Kind::kExit, .value = WEXITSTATUS(first.value)};
  else
    end_ = {.kind = ProgramEnd::Kind::kSignal, .value = WTERMSIG(first.value)};
  return end_;
}

}  // namespace sweep
