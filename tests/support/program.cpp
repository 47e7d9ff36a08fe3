#include "tests/support/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "core/base/file.h"

namespace sweep::testing {
namespace {

// SWEEP_PROGRAM of the environment goes before where it was built: the tests may have been carried elsewhere.
const char* program() {
  const char* carried = std::getenv("SWEEP_PROGRAM");
  return carried != nullptr ? carried : SWEEP_PROGRAM;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// In the child: never returns.
[[noreturn]] void become_program(std::vector<char*> arguments, const std::filesystem::path& directory,
                                 const std::string& out, const std::string& err) {
  const int in_fd = ::open("/dev/null", O_RDONLY);
  const int out_fd = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int err_fd = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (in_fd < 0 || out_fd < 0 || err_fd < 0 || ::chdir(directory.c_str()) != 0) ::_exit(120);
  ::dup2(in_fd, 0);
  ::dup2(out_fd, 1);
  ::dup2(err_fd, 2);
  ::execv(program(), arguments.data());
  ::_exit(121);
}

}  // namespace

Finished run_program(const std::vector<std::string>& words, const std::filesystem::path& directory) {
  const std::string stem = (directory / ("output." + std::to_string(::getpid()))).string();
  std::vector<std::string> strings = {"sweep"};
  strings.insert(strings.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& string : strings) arguments.push_back(string.data());
  arguments.push_back(nullptr);

  Finished finished;
  const pid_t child = ::fork();
  if (child == 0) become_program(arguments, directory, stem + ".out", stem + ".err");
  int status = 0;
  rusage usage{};
  if (child < 0 || ::wait4(child, &status, 0, &usage) != child) {
    ADD_FAILURE() << "cannot start " << program();
    return finished;
  }
  finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  finished.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  finished.out = read_file(stem + ".out");
  finished.err = read_file(stem + ".err");
  std::filesystem::remove(stem + ".out");
  std::filesystem::remove(stem + ".err");
  return finished;
}

}  // namespace sweep::testing
