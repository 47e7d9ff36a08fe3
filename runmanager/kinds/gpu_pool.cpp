#include "runmanager/kinds/gpu_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <system_error>

#include "core/base/text.h"

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
  for (const std::string_view part : split(variable, ',')) {
    std::string name(part);
    std::erase(name, ' ');
    // CUDA ignores what follows the first name of no GPU; -1 is the usual one.
    if (name.empty() || name.starts_with('-') || name == "NoDevFiles") break;
    if (std::ranges::find(gpus, name) == gpus.end()) gpus.push_back(std::move(name));
  }
  return gpus;
}

std::optional<std::string> GpuPool::problem() const {
  const auto wanted = static_cast<std::size_t>(per_run_);
  if (wanted <= gpus_.size()) return std::nullopt;
  return fmt::format(
      "gpus: a run is to have {}, but programs see {} here{}; CUDA_VISIBLE_DEVICES, if set, "
      "says which they see",
      wanted, gpus_.empty() ? "none" : "only " + std::to_string(gpus_.size()),
      gpus_.empty() ? "" : fmt::format(" ({})", fmt::join(gpus_, ", ")));
}

std::optional<std::size_t> GpuPool::max_runs() const {
  if (per_run_ == 0) return std::nullopt;
  return gpus_.size() * static_cast<std::size_t>(runs_per_gpu_) / static_cast<std::size_t>(per_run_);
}

bool GpuPool::has_free() const {
  const auto has_room = [this](const std::string& gpu) {
    const auto found = runs_.find(gpu);
    return found == runs_.end() || found->second < runs_per_gpu_;
  };
  return std::ranges::count_if(gpus_, has_room) >= per_run_;
}

std::vector<std::string> GpuPool::take() {
  std::vector<std::string> order = gpus_;
  std::ranges::stable_sort(order, {}, [this](const std::string& gpu) { return runs_[gpu]; });
  order.resize(static_cast<std::size_t>(per_run_));
  for (const std::string& gpu : order) ++runs_[gpu];
  return order;
}

void GpuPool::give_back(const std::vector<std::string>& gpus) {
  for (const std::string& gpu : gpus) --runs_[gpu];
}

}  // namespace sweep
