// A person's own program as a run; the sweep file's "command" and the keys that go with it.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace sweep {

inline constexpr const char* kRunCwd = "run";  // of "cwd": the run's own directory
/// Max of "reports" if a search compares runs on the way; the records keep that many.
inline constexpr int kMaxComparedReports = 10'000;

struct CommandSpec {
  std::vector<std::string> words;  // the program and its arguments, with substitutions; with a shell one text
  bool shell = false;
  std::filesystem::path cwd;                                 // absolute, or kRunCwd
  std::vector<std::string> inputs;                           // absolute paths or patterns of files
  std::vector<std::pair<std::string, std::string>> metrics;  // name and regular expression
  bool dashes = true;                                        // {flags}: --batch-size, not --batch_size
  double timeout = 0, silence = 0;                           // seconds; 0: none
  double grace = 10;                                         // seconds from SIGTERM to SIGKILL
  int gpus = 0;          // of its own, for each run; 0: it sees what this process does
  int runs_per_gpu = 1;  // runs that may share one
};

}  // namespace sweep
