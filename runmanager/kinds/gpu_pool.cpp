#include "runmanager/kinds/gpu_pool.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <string_view>

#include "core/base/text.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

std::size_t count_of(const fs::path& pattern) {
  glob_t found{};
  const bool has_some = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0;
  const std::size_t count = has_some ? found.gl_pathc : 0;
  ::globfree(&found);
  return count;
}

}  // namespace

std::vector<std::string> visible_gpus(const char* variable, const fs::path& root) {
  std::vector<std::string> gpus;
  if (variable == nullptr) {
    std::size_t count = count_of(root / "proc/driver/nvidia/gpus/*");
    if (count == 0) count = count_of(root / "dev/nvidia[0-9]*");
    for (std::size_t i = 0; i < count; ++i) gpus.push_back(std::to_string(i));
    return gpus;
  }
  for (const std::string_view part : split(variable, ',')) {
    std::string name(part);
    std::erase(name, ' ');
    const bool is_number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    // CUDA ignores what follows the first name of no GPU, such as -1 or none.
    if (!is_number && !name.starts_with("GPU-") && !name.starts_with("MIG-")) break;
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
