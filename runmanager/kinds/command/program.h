// A person's program as a child process, with everything that it starts.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file.h"

namespace sweep {

/// How a program has ended.
struct ProgramEnd {
  enum class Kind { kExit, kSignal, kNotStarted } kind = Kind::kExit;
  int value = 0;     // the exit code, the signal, or why it could not be started: an errno
  bool cwd = false;  // of kNotStarted: the working directory was the reason
};

/// Runs in a process group of its own, below a keeper: a process that does nothing but watch it. The keeper
/// adopts whatever leaves the group or outlives its parent, and kills all of it when the program has ended,
/// and when this process is gone, however that died. Not thread-safe; to be started by the main thread.
class Program {
 public:
  struct Pipe {
    FileDescriptor reader;
    int writer = -1;  // only while it is started
  };

  /// Throws IoError if no process can be started.
  Program(const std::vector<std::string>& words, const std::vector<std::string>& environment,
          const std::filesystem::path& directory);
  ~Program();  ///< Kills it, and waits until all is gone.
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Its output, of which reading does not wait.
  int output() const { return output_.reader.get(); }
  int errors() const { return errors_.reader.get(); }
  /// Readable when it has ended.
  int ended() const { return status_.reader.get(); }

  /// Sends SIGTERM to its group.
  void request_end() const;
  /// Kills it and everything that it has started.
  void kill() const;
  /// How it has ended; nothing as long as it runs. All that it has started is gone then.
  std::optional<ProgramEnd> end();

 private:
  pid_t keeper_ = 0;
  Pipe output_, errors_, status_;
  std::optional<ProgramEnd> end_;
};

}  // namespace sweep
