// Starts other programs.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace sweep {

/// How a program is started: with an empty standard input, all signals as a new program has them, and of this
/// process's descriptors only those that are not closed on exec. Not thread-safe.
class Spawn {
 public:
  Spawn();
  ~Spawn();
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;

  /// The program has this process's descriptor `fd` as its descriptor `as`; the same number keeps one open
  /// that is closed on exec.
  void give(int fd, int as);
  /// The program has a process group of its own: Ctrl-C is not for it.
  void in_own_group();

  /// Starts the first of `words`, looked for in PATH unless it has a slash, with the others as its arguments.
  /// Returns 0, or an errno value if it cannot be started.
  int start(std::vector<std::string> words, pid_t& pid) const;

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
  short flags_ = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
};

}  // namespace sweep
