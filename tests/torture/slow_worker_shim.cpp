// Preloaded into a program: makes its workers slow without keeping a core busy, so that many of them can be
// in the middle of a run on a small machine.
//
//   SWEEP_SLOW_MILLISECONDS=N    before a worker tells the sweep anything, about three times an epoch, it
//                                sleeps so long; a worker is a process with "worker" as its first argument
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

namespace {

bool is_worker() {
  std::array<char, 4096> line{};
  const int fd = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  const ssize_t length = fd < 0 ? 0 : ::read(fd, line.data(), line.size());
  ::close(fd);
  const std::string_view words(line.data(), length < 0 ? 0 : static_cast<std::size_t>(length));
  const std::size_t first_end = words.find('\0');
  return first_end != std::string_view::npos &&
         words.substr(first_end + 1).starts_with(std::string_view("worker\0", 7));
}

std::chrono::milliseconds delay() {
  const char* text = std::getenv("SWEEP_SLOW_MILLISECONDS");
  return std::chrono::milliseconds(text != nullptr && is_worker() ? std::strtol(text, nullptr, 10) : 0);
}

}  // namespace

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  static const auto next =
      reinterpret_cast<ssize_t (*)(int, const msghdr*, int)>(::dlsym(RTLD_NEXT, "sendmsg"));
  static const std::chrono::milliseconds sleeps = delay();
  if (sleeps.count() > 0) std::this_thread::sleep_for(sleeps);
  return next(fd, message, flags);
}
