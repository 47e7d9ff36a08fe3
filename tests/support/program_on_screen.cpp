#include "tests/support/program_on_screen.h"

#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace sweep::testing {
namespace {

winsize size_of(int width, int height) {
  winsize size{};
  size.ws_col = static_cast<unsigned short>(width);
  size.ws_row = static_cast<unsigned short>(height);
  return size;
}

}  // namespace

ProgramOnScreen::ProgramOnScreen(const std::string& program, const std::vector<std::string>& words,
                                 const std::filesystem::path& directory, int width, int height)
    : screen(width, height) {
  std::vector<std::string> strings = joined({"sweep"}, words);
  std::vector<char*> arguments;
  arguments.reserve(strings.size() + 1);
  for (std::string& string : strings) arguments.push_back(string.data());
  arguments.push_back(nullptr);
  winsize size = size_of(width, height);
  child_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
  if (child_ == 0) {
    ::setenv("TERM", "xterm-256color", 1);
    ::setenv("LC_ALL", "C.UTF-8", 1);
    for (const char* name : {"NO_COLOR", "XTERM_VERSION", "STY"}) ::unsetenv(name);
    if (::chdir(directory.c_str()) != 0) ::_exit(120);
    ::execv(program.c_str(), arguments.data());
    ::_exit(121);
  }
  if (child_ < 0) ADD_FAILURE() << "cannot start " << program << " on a terminal";
}

ProgramOnScreen::~ProgramOnScreen() {
  if (child_ > 0 && !status_) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  if (terminal_ >= 0) ::close(terminal_);
}

// Returns whether there may be more.
bool ProgramOnScreen::read_some() {
  pollfd event{.fd = terminal_, .events = POLLIN, .revents = 0};
  if (::poll(&event, 1, 50) <= 0) return true;
  std::array<char, 4096> buffer;
  const ssize_t count = ::read(terminal_, buffer.data(), buffer.size());
  if (count <= 0) return false;  // EIO: the program has ended.
  const std::string_view text(buffer.data(), static_cast<std::size_t>(count));
  sent += text;
  screen.write(text);
  return true;
}

bool ProgramOnScreen::show_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end || !read_some()) return done();
  }
  return true;
}

int ProgramOnScreen::finish() {
  show_until([] { return false; });
  int status = 0;
  if (::waitpid(child_, &status, 0) != child_) return -1;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return *status_;
}

void ProgramOnScreen::resize(int width, int height) {
  screen.resize(width, height);
  const winsize size = size_of(width, height);
  ::ioctl(terminal_, TIOCSWINSZ, &size);
}

void ProgramOnScreen::send_signal(int signal) const { ::kill(child_, signal); }

}  // namespace sweep::testing
