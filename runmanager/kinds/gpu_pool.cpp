#include "runmanager/kinds/gpu_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <system_error>

namespace sweep {
namespace {

namespace fs = std::filesystem;

std::size_t count_of(const fs::path& directory, std::string_view prefix) {
  std::error_code error;
  std::size_t count = 0;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    const bool is_numbered =
        name.size() > prefix.size() && name.starts_with(prefix) &&
        std::ranges::all_of(name.substr(prefix.size()), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (prefix.empty() || is_numbered) ++count;
  }
  return count;
}

}  // namespace

std::vector<std::string> visible_gpus(const char* variable, const fs::path& root) {
  std::vector<std::string> gpus;
  if (variable == nullptr) {
    std::size_t count = count_of(root / "proc/driver/nvidia/gpus", "");
    if (count == 0) count = count_of(root / "dev", "nvidia");
    for (std::size_t i = 0; i < count; ++i) gpus.push_back(std::to_string(i));
    return gpus;
  }
  std::string_view rest = variable;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    std::string name(rest.substr(0, end));
    std::erase(name, ' ');
    // CUDA ignores what follows the first name of no GPU; -1 is the usual one.
    if (name.empty() || name.starts_with('-') || name == "NoDevFiles") break;
    if (std::ranges::find(gpus, name) == gpus.end()) gpus.push_back(std::move(name));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return gpus;
}

std::optional<std::string> GpuPool::problem() const {
  const auto wanted = static_cast<std::size_t>(need_.per_run);
  if (wanted <= gpus_.size()) return std::nullopt;
  return fmt::format(
      "gpus: a run is to have {}, but programs see {} here{}; CUDA_VISIBLE_DEVICES, if set, "
      "says which they see",
      wanted, gpus_.empty() ? "none" : "only " + std::to_string(gpus_.size()),
      gpus_.empty() ? "" : fmt::format(" ({})", fmt::join(gpus_, ", ")));
}

std::optional<std::size_t> GpuPool::max_runs() const {
  if (need_.per_run == 0) return std::nullopt;
  return gpus_.size() * static_cast<std::size_t>(need_.runs_per_gpu) /
         static_cast<std::size_t>(need_.per_run);
}

std::optional<std::vector<std::string>> GpuPool::take() {
  std::vector<std::string> order = gpus_;
  std::ranges::stable_sort(order, {}, [this](const std::string& gpu) { return runs_[gpu]; });
  std::vector<std::string> taken;
  for (std::string& gpu : order) {
    if (taken.size() < static_cast<std::size_t>(need_.per_run) && runs_[gpu] < need_.runs_per_gpu)
      taken.push_back(std::move(gpu));
  }
  if (taken.size() < static_cast<std::size_t>(need_.per_run)) return std::nullopt;
  for (const std::string& gpu : taken) ++runs_[gpu];
  return taken;
}

void GpuPool::give_back(const std::vector<std::string>& gpus) {
  for (const std::string& gpu : gpus) --runs_[gpu];
}

}  // namespace sweep
