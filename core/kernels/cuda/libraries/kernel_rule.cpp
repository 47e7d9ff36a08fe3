#include "core/kernels/cuda/libraries/kernel_rule.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep::cuda {
namespace {

std::string model_of(int device) {
  for (const DeviceInfo& info : list_cuda_devices()) {
    if (info.device.index == device) return info.description;
  }
  return "";
}

// The open libraries of this process.
template <class Shape>
struct OpenLibraries {
  std::mutex mutex;
  std::map<int, std::shared_ptr<const LayerLibrary<Shape>>> by_device;
};

// Never destroyed: handles must not be closed after the CUDA runtime, whose end this file cannot order.
template <class Shape>
OpenLibraries<Shape>& open_libraries() {
  static auto* const libraries = new OpenLibraries<Shape>;
  return *libraries;
}

// open_library(device), once per process and device: handles and probes cost a second, and a sweep makes one
// engine per run. One that would not open, perhaps for lack of memory, is tried again the next time.
template <class Shape>
std::shared_ptr<const LayerLibrary<Shape>> shared_library(int device) {
  OpenLibraries<Shape>& known = open_libraries<Shape>();
  const std::scoped_lock lock(known.mutex);
  auto& library = known.by_device[device];
  if (library == nullptr) library = open_library<Shape>(device);
  return library;
}

template <class Shape>
void forget() {
  const std::scoped_lock lock(open_libraries<Shape>().mutex);
  open_libraries<Shape>().by_device.clear();
}

}  // namespace

void forget_shared_libraries() {
  forget<LinearShape>();
  forget<ConvShape>();
}

std::int64_t products(const LinearShape& s, const LibraryTask& task) {
  return std::int64_t{task.images} * s.in_features * s.out_features;
}

std::int64_t products(const ConvShape& s, const LibraryTask& task) {
  return std::int64_t{task.images} * s.out_channels * s.out_height * s.out_width * s.taps();
}

bool library_is_faster(const LinearShape& shape, const LibraryTask& task) {
  return products(shape, task) >= kMinLibraryProducts;
}

bool library_is_faster(const ConvShape& s, const LibraryTask& task) {
  constexpr int kMinSum = 128, kMinTapsOfGradient = 512;
  if (products(s, task) < kMinLibraryProducts) return false;
  switch (task.direction) {
    case Direction::kForward:
      return s.taps() >= kMinSum;
    case Direction::kBackwardWeights:
      return s.taps() >= kMinTapsOfGradient;
    case Direction::kBackwardInput:
      return s.group_out() * s.kernel_height * s.kernel_width >= kMinSum;
  }
  return false;
}

KernelPolicy policy_from_environment() {
  constexpr const char* kVariable = "SWEEP_CUDA_KERNELS";
  const char* value = std::getenv(kVariable);
  const std::string_view text = value != nullptr ? value : "";
  if (text.empty()) return KernelPolicy::kByShape;
  if (text == "builtin") return KernelPolicy::kBuiltin;
  if (text == "library") return KernelPolicy::kLibrary;
  throw ConfigError(std::string(kVariable) + ": got \"" + std::string(text) +
                    "\", want builtin, library or nothing");
}

std::string kernels_text(const UsedLibraries& libraries, int device) {
  if (libraries.empty()) return "builtin";
  std::string text;
  for (const std::string& library : libraries) text += (text.empty() ? "" : ", ") + library;
  return text + " on " + model_of(device);
}

template <class Shape>
LibraryChoice<Shape> KernelRule::choose(const Shape& shape, const std::vector<LibraryTask>& tasks) {
  LibraryChoice<Shape> choice;
  for (LibraryTask task : tasks) {
    if (policy_ == KernelPolicy::kBuiltin ||
        (policy_ == KernelPolicy::kByShape && !library_is_faster(shape, task)))
      continue;
    const auto library = shared_library<Shape>(device_);
    if (library == nullptr) return {};
    task.deterministic = deterministic_;
    const auto plan = library->plan(shape, task, kMaxWorkspace);
    if (plan == nullptr) continue;
    task.deterministic = plan->deterministic();  // then the plans for smaller batches must also be
    choice.library = library;
    choice.tasks.push_back(task);
    used_.insert(library->name() + (policy_ == KernelPolicy::kLibrary ? " for every layer" : "") +
                 std::string(task.deterministic ? "" : kInAnyOrder));
  }
  return choice;
}

template LibraryChoice<LinearShape> KernelRule::choose(const LinearShape&, const std::vector<LibraryTask>&);
template LibraryChoice<ConvShape> KernelRule::choose(const ConvShape&, const std::vector<LibraryTask>&);

}  // namespace sweep::cuda
