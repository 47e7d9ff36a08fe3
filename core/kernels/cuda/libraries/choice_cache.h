// What measurements on this machine have decided, kept for later runs in
// $XDG_CACHE_HOME/sweep/cuda-choices.json, else in ~/.cache.
//
// A measurement can end one way today and the other way tomorrow, and the bits of a training depend on it. So
// what was decided once stays: the first process that measures holds a lock on a file beside, others wait for
// it and take what it found. Where the file cannot be kept, nothing is decided by measuring.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace sweep::cuda {

struct Choice {
  bool library = false;
  double builtin_seconds = 0, library_seconds = 0;  // for whoever reads the file
};

class ChoiceCache {
 public:
  /// `file` need not be there, nor its directory. Empty: nothing can be kept.
  explicit ChoiceCache(std::filesystem::path file) : file_(std::move(file)) {}

  /// The choice kept for `task` among those of `setting` (the device and the library's version); if there is
  /// none, that of `measure`, after it was written. Nothing if `measure` has nothing, or if the file cannot
  /// be written. A file that is damaged, or of another version of the program's kernels, counts as empty and
  /// is replaced. Throws what `measure` throws. Safe with any number of processes at once.
  std::optional<Choice> find_or_measure(const std::string& setting, const std::string& task,
                                        const std::function<std::optional<Choice>()>& measure) const;

 private:
  std::filesystem::path file_;
};

/// Where XDG_CACHE_HOME and HOME say; empty without both.
std::filesystem::path default_choice_file();

}  // namespace sweep::cuda
