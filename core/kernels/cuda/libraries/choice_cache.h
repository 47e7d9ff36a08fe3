// Keeps the autotuner's decisions for later runs, in $XDG_CACHE_HOME/sweep/cuda-choices.json or
// ~/.cache/sweep.
//
// A measurement can turn out differently tomorrow, and the bits of a training depend on it. So a decision
// stays once it is made: the first process to measure a task holds a lock file, and others wait for it and
// use its result. Where the file cannot be written, nothing is decided by measuring.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace sweep::cuda {

/// The decision between a built-in kernel and a library's.
struct Choice {
  bool library = false;                             // the library's
  double builtin_seconds = 0, library_seconds = 0;  // for people who read the file
};

class ChoiceCache {
 public:
  /// Neither `file` nor its directory need exist. Empty path: nothing can be kept.
  explicit ChoiceCache(std::filesystem::path file) : file_(std::move(file)) {}

  /// The choice for `task` under `setting` (device and library version). If the file has none, calls
  /// `measure`, writes its choice and returns it. Nothing if `measure` returns nothing or the file cannot be
  /// written. A file that is damaged, or of another version of the built-in kernels, counts as empty and is
  /// replaced. Throws what `measure` throws. Safe with any number of threads and processes.
  std::optional<Choice> find_or_measure(const std::string& setting, const std::string& task,
                                        const std::function<std::optional<Choice>()>& measure) const;

 private:
  std::filesystem::path file_;
};

/// The file under XDG_CACHE_HOME or HOME; empty if both are unset.
std::filesystem::path default_choice_file();

}  // namespace sweep::cuda
