#include "tests/support/program.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sweep::testing {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// In the child: never returns.
[[noreturn]] void exec_program(const std::string& program, std::vector<char*> arguments,
                               const std::filesystem::path& directory, const std::string& out,
                               const std::string& err, bool obeys_permissions) {
  const int in_fd = ::open("/dev/null", O_RDONLY);
  const int out_fd = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int err_fd = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (in_fd < 0 || out_fd < 0 || err_fd < 0 || ::chdir(directory.c_str()) != 0) ::_exit(120);
  ::dup2(in_fd, 0);
  ::dup2(out_fd, 1);
  ::dup2(err_fd, 2);
  if (obeys_permissions && ::geteuid() == 0) {
    // What is not in the bounding set is not given back by execv().
    for (const unsigned long right : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH}) {
      if (::prctl(PR_CAPBSET_DROP, right, 0, 0, 0) != 0) ::_exit(kCannotDrop);
    }
  }
  ::execv(program.c_str(), arguments.data());
  ::_exit(121);
}

}  // namespace

std::string program_path(const char* built) {
  const char* moved = std::getenv("SWEEP_PROGRAM");
  return moved != nullptr ? moved : built;
}

Finished run_program(const std::string& program, const std::vector<std::string>& words,
                     const std::filesystem::path& directory, const ProgramOptions& options) {
  const std::string stem = (directory / ("output." + std::to_string(::getpid()))).string();
  const bool captured = options.standard_output.empty();
  const std::string out = captured ? stem + ".out" : options.standard_output.string();
  std::vector<std::string> strings = joined({"sweep"}, words);
  std::vector<char*> arguments;
  for (std::string& string : strings) arguments.push_back(string.data());
  arguments.push_back(nullptr);

  Finished finished;
  const pid_t child = ::fork();
  if (child == 0) exec_program(program, arguments, directory, out, stem + ".err", options.obeys_permissions);
  int status = 0;
  rusage usage{};
  if (child < 0 || ::wait4(child, &status, 0, &usage) != child) {
    ADD_FAILURE() << "cannot start " << program;
    return finished;
  }
  finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  finished.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  finished.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  if (captured) finished.out = read_file(out);
  finished.err = read_file(stem + ".err");
  if (captured) std::filesystem::remove(out);
  std::filesystem::remove(stem + ".err");
  return finished;
}

}  // namespace sweep::testing
