// The GPUs that runs of programs get for themselves.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sweep {

/// The GPUs that a program started by this process could use, as CUDA_VISIBLE_DEVICES names them. `variable`:
/// the value of that variable. If it is null, the driver tells how many there are: below `root`, in
/// proc/driver/nvidia/gpus, or dev/nvidia0, dev/nvidia1, … in a container that hides the former. Never
/// throws.
std::vector<std::string> visible_gpus(const char* variable, const std::filesystem::path& root = "/");

/// Hands out GPUs. Not thread-safe.
class GpuPool {
 public:
  GpuPool() = default;  ///< Of a sweep whose runs get none.
  /// `per_run`: GPUs of each run; 0: runs get none of their own. `runs_per_gpu`: runs that may share one.
  GpuPool(std::vector<std::string> gpus, int per_run, int runs_per_gpu = 1)
      : gpus_(std::move(gpus)), per_run_(per_run), runs_per_gpu_(runs_per_gpu) {}

  const std::vector<std::string>& gpus() const { return gpus_; }
  /// Why no run can have the GPUs that it needs; nothing if one can.
  std::optional<std::string> problem() const;
  /// How many runs can have theirs at once; nothing: any number, as they get none.
  std::optional<std::size_t> max_runs() const;

  /// Whether one more run can have its GPUs.
  bool has_free() const;
  /// Returns the GPUs of one more run, those with the fewest runs. Only if has_free().
  std::vector<std::string> take();
  /// Takes them back when the run has ended.
  void give_back(const std::vector<std::string>& gpus);

 private:
  std::vector<std::string> gpus_;
  int per_run_ = 0, runs_per_gpu_ = 1;
  std::map<std::string, int> runs_;  // of each GPU, now
};

}  // namespace sweep
