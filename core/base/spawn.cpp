#include "core/base/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace sweep {

Spawn::Spawn() {
  ::posix_spawnattr_init(&attributes_);
  ::posix_spawn_file_actions_init(&actions_);
  sigset_t none, handled;
  ::sigemptyset(&none);
  ::sigemptyset(&handled);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGPIPE}) ::sigaddset(&handled, signal);
  ::posix_spawnattr_setsigmask(&attributes_, &none);
  ::posix_spawnattr_setsigdefault(&attributes_, &handled);
  ::posix_spawnattr_setflags(&attributes_, flags_);
  ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
}

Spawn::~Spawn() {
  ::posix_spawnattr_destroy(&attributes_);
  ::posix_spawn_file_actions_destroy(&actions_);
}

// Duplicating a descriptor onto itself clears its close-on-exec flag, in the child only.
void Spawn::give(int fd, int as) { ::posix_spawn_file_actions_adddup2(&actions_, fd, as); }

void Spawn::in_own_group() {
  flags_ |= POSIX_SPAWN_SETPGROUP;
  ::posix_spawnattr_setpgroup(&attributes_, 0);
  ::posix_spawnattr_setflags(&attributes_, flags_);
}

int Spawn::start(std::vector<std::string> words, pid_t& pid) const {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return ::posix_spawnp(&pid, arguments[0], &actions_, &attributes_, arguments.data(), environ);
}

}  // namespace sweep
