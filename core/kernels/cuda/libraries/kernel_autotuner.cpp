#include "core/kernels/cuda/libraries/kernel_autotuner.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/error.h"
#include "core/kernels/cuda/libraries/kernel_comparison.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep::cuda {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kBuiltin = "own";

std::string by(int a, int b) { return std::to_string(a) + "x" + std::to_string(b); }

std::string text(const LinearShape& s) {
  return "linear " + by(s.in_features, s.out_features) + (s.bias ? " bias" : "");
}

std::string text(const ConvShape& s) {
  return "conv2d " + std::to_string(s.in_channels) + "x" + by(s.in_height, s.in_width) + " to " +
         std::to_string(s.out_channels) + "x" + by(s.out_height, s.out_width) + " kernel " +
         by(s.kernel_height, s.kernel_width) + " stride " + by(s.stride_y, s.stride_x) + " padding " +
         by(s.pad_y, s.pad_x) + " dilation " + by(s.dilation_y, s.dilation_x) + " groups " +
         std::to_string(s.groups) + (s.bias ? " bias" : "");
}

std::string text(const BatchNormShape& s) { return "batch_norm2d " + by(s.channels, s.plane); }

std::string text(const PoolLayer& layer) {
  const PoolShape& s = layer.shape;
  std::string result = !layer.average                               ? "max_pool2d "
                       : *layer.average == Average::kWithPadding    ? "avg_pool2d "
                       : *layer.average == Average::kWithoutPadding ? "avg_pool2d without padding "
                                                                    : "adaptive_avg_pool2d ";
  result +=
      std::to_string(s.channels) + "x" + by(s.in_height, s.in_width) + " to " + by(s.out_height, s.out_width);
  if (layer.average == Average::kAdaptive) return result;
  return result + " kernel " + by(s.kernel_height, s.kernel_width) + " stride " + by(s.stride_y, s.stride_x) +
         " padding " + by(s.pad_y, s.pad_x);
}

// All that algorithms depend on, as does the time they take.
template <class Shape>
std::string text(const Shape& shape, const LibraryTask& task) {
  constexpr int kAlignmentFloats = 64;  // floats in 256 bytes
  std::string result =
      text(shape) + ", " + std::to_string(task.images) + " images, " + to_string(task.direction);
  if (task.relu) result += " relu";
  if (task.add) result += " add";
  if (!task.deterministic) result += " in any order";
  if (task.direction != Direction::kBackwardWeights)
    result += " at " + std::to_string(task.weight_offset % kAlignmentFloats) + " and " +
              std::to_string(task.bias_offset % kAlignmentFloats);
  return result;
}

}  // namespace

const char* to_string(Direction direction) {
  switch (direction) {
    case Direction::kForward:
      return "forward";
    case Direction::kBackwardWeights:
      return "weights";
    case Direction::kBackwardInput:
      return "input";
    case Direction::kInference:
      return "evaluate";
  }
  return "";
}

KernelPolicy policy_from_environment() {
  constexpr const char* kVariable = "SWEEP_CUDA_KERNELS";
  const char* value = std::getenv(kVariable);
  const std::string_view text = value != nullptr ? value : "";
  if (text.empty() || text == "measured") return KernelPolicy::kMeasured;
  if (text == "own") return KernelPolicy::kBuiltin;
  if (text == "library") return KernelPolicy::kLibrary;
  throw ConfigError(std::string(kVariable) + ": got \"" + std::string(text) +
                    "\", want measured, own or library");
}

template <class Shape>
std::vector<LibraryTask> KernelAutotuner::choose(const std::string& layer, const Shape& shape,
                                                 const std::vector<LibraryTask>& tasks) {
  std::vector<LibraryTask> all;
  for (const LibraryTask& task : tasks) {
    const auto own = chosen(layer, shape, task);
    if (!own) continue;
    note(layer, *own, library(shape)->name());
    all.push_back(*own);
  }
  return all;
}

template <class Shape>
std::vector<LibraryTask> KernelAutotuner::choose_all_or_none(const std::string& layer, const Shape& shape,
                                                             const std::vector<LibraryTask>& tasks) {
  std::vector<LibraryTask> all;
  for (const LibraryTask& task : tasks) {
    const auto own = chosen(layer, shape, task);
    if (!own) return {};
    all.push_back(*own);
  }
  for (const LibraryTask& task : all) note(layer, task, library(shape)->name());
  return all;
}

// The task as the library does it, or nothing.
template <class Shape>
std::optional<LibraryTask> KernelAutotuner::chosen(const std::string& layer, const Shape& shape,
                                                   LibraryTask task) {
  task.deterministic = options_.deterministic;
  const bool recorded = !options_.recorded.empty();
  // Before any library is opened, which small networks should not have to wait for.
  if (recorded ? !is_recorded(layer, task.direction)
               : options_.policy == KernelPolicy::kBuiltin ||
                     (options_.policy == KernelPolicy::kMeasured && products(shape, task) < kMinProducts))
    return std::nullopt;
  const auto& library = libraries().of(shape);
  if (library == nullptr) return std::nullopt;
  const auto plan = library->plan(shape, task, kMaxWorkspace);
  if (plan == nullptr) return std::nullopt;
  if (!recorded && options_.policy == KernelPolicy::kMeasured &&
      !is_for_library(shape, task, *plan, library->name()))
    return std::nullopt;
  task.deterministic = plan->deterministic();  // also with smaller batches, if record() says so
  return task;
}

void KernelAutotuner::note(const std::string& layer, const LibraryTask& task, const std::string& library) {
  same_bits_ = same_bits_ && task.deterministic;
  used_.insert(library);
  layers_[layer].emplace_back(to_string(task.direction));
}

template <class Shape>
bool KernelAutotuner::is_for_library(const Shape& shape, const LibraryTask& task, const LibraryPlan& plan,
                                     const std::string& library) {
  if (!options_.timer) return true;
  const auto measure = [&]() -> std::optional<Choice> {
    try {
      use_device(options_.device);
      const Comparison comparison = compare(shape, task, plan, options_.timer);
      return Choice{comparison.agree && comparison.library_seconds < comparison.builtin_seconds,
                    comparison.builtin_seconds, comparison.library_seconds};
    } catch (const DeviceError&) {
      return std::nullopt;  // too little memory; anything worse comes again
    }
  };
  const ChoiceCache cache(options_.choices);
  const auto choice = cache.find_or_measure(device_name() + ", " + library, text(shape, task), measure);
  return !choice || choice->library;
}

bool KernelAutotuner::may_fuse(const std::string& layer) const {
  if (options_.recorded.empty()) return options_.policy != KernelPolicy::kLibrary;
  const auto works = {Direction::kForward, Direction::kBackwardWeights, Direction::kBackwardInput};
  return std::none_of(works.begin(), works.end(),
                      [&](Direction direction) { return is_recorded(layer, direction); });
}

bool KernelAutotuner::is_recorded(const std::string& layer, Direction direction) const {
  if (options_.recorded == kBuiltin) return false;
  const Json json = Json::parse(options_.recorded, nullptr, false);
  if (!json.is_object() || !json.contains("layers") || !json["layers"].is_object()) return false;
  const Json works = json["layers"].value(layer, Json::array());
  return std::find(works.begin(), works.end(), to_string(direction)) != works.end();
}

std::string KernelAutotuner::record() const {
  if (layers_.empty()) return kBuiltin;
  Json json = {{"device", device_name_}, {"libraries", used_}, {"layers", layers_}};
  if (!same_bits_) json["same_bits"] = false;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Libraries& KernelAutotuner::libraries() {
  if (!libraries_) {
    device_name();
    libraries_ = open_libraries(options_.device);
  }
  return *libraries_;
}

const std::string& KernelAutotuner::device_name() {
  if (device_name_.empty()) {
    const std::vector<DeviceInfo> devices = list_cuda_devices();
    const auto index = static_cast<std::size_t>(options_.device);
    if (index < devices.size()) device_name_ = devices[index].description;
  }
  return device_name_;
}

template std::vector<LibraryTask> KernelAutotuner::choose(const std::string&, const LinearShape&,
                                                          const std::vector<LibraryTask>&);
template std::vector<LibraryTask> KernelAutotuner::choose(const std::string&, const ConvShape&,
                                                          const std::vector<LibraryTask>&);
template std::vector<LibraryTask> KernelAutotuner::choose(const std::string&, const BatchNormShape&,
                                                          const std::vector<LibraryTask>&);
template std::vector<LibraryTask> KernelAutotuner::choose(const std::string&, const PoolLayer&,
                                                          const std::vector<LibraryTask>&);
template std::vector<LibraryTask> KernelAutotuner::choose_all_or_none(const std::string&,
                                                                      const BatchNormShape&,
                                                                      const std::vector<LibraryTask>&);
template std::vector<LibraryTask> KernelAutotuner::choose_all_or_none(const std::string&, const PoolLayer&,
                                                                      const std::vector<LibraryTask>&);

}  // namespace sweep::cuda
