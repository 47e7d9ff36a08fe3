// Starts, watches, stops and reaps every program that this one runs.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.h"

namespace sweep {

/// How a process has ended.
struct ProcessEnd {
  enum class Kind { kExit, kSignal, kNotStarted } kind = Kind::kExit;
  int value = 0;     // the exit code, the signal, or why it could not be started: an errno
  bool cwd = false;  // of kNotStarted: the working directory was the reason
};

/// "SIGSEGV", or "signal 63" for one without a name.
std::string name_of_signal(int signal);

/// "killed by SIGSEGV", of a process that this one did not end; for SIGKILL with what may be the reason.
std::string killed_by(int signal);

/// What a child belongs to. kParents: the process group of this process; Ctrl-C and Ctrl-Z are also for it.
/// kOwn: a group of its own. kKept: the same, below a keeper: a process that only watches it. The
/// keeper adopts whatever leaves the group or outlives its parent, and kills all of it when the program has
/// ended, and when this process is gone, however that died.
enum class ChildGroup { kParents, kOwn, kKept };

struct ChildStart {
  std::vector<std::string> words;  // the program, looked for in PATH unless it has a slash, and its arguments
  std::optional<std::vector<std::string>> environment = {};  // none: that of this process
  std::filesystem::path directory = {};                      // empty: that of this process
  ChildGroup group = ChildGroup::kOwn;
  bool captures_output = true;      // else output and errors go to the standard error of this process
  std::vector<int> inherited = {};  // further descriptors that it gets, under the same numbers
};

/// A started process. Its standard input is empty and its signals have their defaults, except that one that
/// is not kept ignores SIGXFSZ if this process does. It is killed when the thread that started it ends. Not
/// thread-safe.
class Child {
 public:
  /// Returns when the program runs or could not be started; end() then tells which. Throws IoError if there
  /// is no memory or descriptor for a process.
  explicit Child(const ChildStart& start);
  /// Kills it, and waits until it is gone, up to two seconds: one that waits for a disk ends when that
  /// answers.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Returns when there is output or it may have ended, or after `limit`.
  void wait(std::chrono::milliseconds limit) const;
  /// Passes on what it has written by now, up to some megabytes. Does not wait.
  void read(const std::function<void(std::string_view text, bool is_error)>& use);
  /// Returns how it ended, or nothing while it runs. Does not wait.
  std::optional<ProcessEnd> end();
  /// Like end(), but waits up to `limit`.
  std::optional<ProcessEnd> wait_for_end(std::chrono::milliseconds limit);

  /// The first call sends SIGTERM to its group; one `grace` seconds later or more kills it. `now`: seconds
  /// of any clock.
  void stop(double now, double grace);
  /// Sends SIGKILL to its group, or kills all that it has started if it is kept. Returns false if that is not
  /// allowed.
  bool kill() const;

 private:
  pid_t target() const { return group_ == ChildGroup::kOwn ? -pid_ : pid_; }  // of signals

  const ChildGroup group_;
  std::vector<FileDescriptor> readers_;  // of output and errors; -1 at their end
  pid_t pid_ = 0;                        // of the keeper, if it is kept
  std::optional<double> asked_;          // when it was asked to end
  std::optional<ProcessEnd> end_;
};

struct CommandResult {
  bool started = false;  // false: there is no such program, or it may not be executed
  bool ended = false;    // `goes_on` ended it
  int code = -1;         // its exit code; 128 + N if signal N ended it
  std::string out, err;  // at most 64 MiB each
};

/// Runs the program words[0], which is looked for in PATH, with an empty standard input and without a shell.
/// It does not get Ctrl-C. `goes_on` is called about ten times a second; if it returns false or throws, the
/// program is killed with all that it started. Throws IoError if memory or descriptors are too few for a
/// process, and what `goes_on` throws. Thread-safe.
CommandResult run_command(const std::vector<std::string>& words, const std::function<bool()>& goes_on);

}  // namespace sweep
