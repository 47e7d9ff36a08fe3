#include "core/kernels/cuda/libraries/kernel_autotuner.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/error.h"
#include "core/json/json_text.h"
#include "core/kernels/cuda/libraries/kernel_comparison.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"

namespace sweep::cuda {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kBuiltin = "own";  // the record of a network without library kernels
// Keys of a record that list directions by layer.
constexpr const char *kLayers = "layers", *kNoAlgorithm = "no_algorithm";

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

// The key of the choice cache: everything that algorithms and their speed depend on. Its words are in users'
// files.
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

// "fc forward": a layer and a direction of it.
std::string entry(const std::string& layer, const std::string& direction) { return layer + " " + direction; }

// The entries of one list of a record. Records come from files: what is no such list has none.
std::set<std::string> entries_of(const Json& record, const char* list) {
  std::set<std::string> entries;
  const auto layers = record.is_object() ? record.find(list) : record.end();
  if (layers == record.end() || !layers->is_object()) return entries;
  for (const auto& [layer, directions] : layers->items()) {
    for (const Json& direction : directions) {
      if (direction.is_string()) entries.insert(entry(layer, direction.get<std::string>()));
    }
  }
  return entries;
}

}  // namespace

KernelAutotuner::KernelAutotuner(AutotunerOptions options) : options_(std::move(options)) {
  if (!options_.recorded.starts_with('{')) return;  // kBuiltin, or nothing
  try {
    const Json record = parse_json_text(options_.recorded, "kernels:");
    for (const char* list : {kLayers, kNoAlgorithm}) recorded_[list] = entries_of(record, list);
  } catch (const DataError&) {
    // Damaged: no library kernels. Then record() differs, and the run starts anew.
  }
}

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
  std::vector<LibraryTask> chosen;
  for (LibraryTask task : tasks) {
    const Decision decision = decide(layer, shape, task);
    if (decision == Decision::kNoAlgorithm) no_algorithm_[layer].emplace_back(to_string(task.direction));
    if (decision != Decision::kLibrary) continue;
    note(layer, task, library(shape)->name());
    chosen.push_back(task);
  }
  return chosen;
}

template <class Shape>
std::vector<LibraryTask> KernelAutotuner::choose_all_or_none(const std::string& layer, const Shape& shape,
                                                             const std::vector<LibraryTask>& tasks) {
  std::vector<LibraryTask> chosen = tasks;
  for (LibraryTask& task : chosen) {
    const Decision decision = decide(layer, shape, task);
    if (decision == Decision::kLibrary) continue;
    // All tasks are noted, not only this one, so that a resumed run finds the first of them in the record.
    for (const LibraryTask& each : tasks) {
      if (decision == Decision::kNoAlgorithm) no_algorithm_[layer].emplace_back(to_string(each.direction));
    }
    return {};
  }
  for (const LibraryTask& task : chosen) note(layer, task, library(shape)->name());
  return chosen;
}

template <class Shape>
KernelAutotuner::Decision KernelAutotuner::decide(const std::string& layer, const Shape& shape,
                                                  LibraryTask& task) {
  task.deterministic = options_.deterministic;
  const bool recorded = !options_.recorded.empty(),
             measured = !recorded && options_.policy == KernelPolicy::kMeasured,
             forced = !recorded && options_.policy == KernelPolicy::kLibrary;
  // Decided before a library is opened: small networks need not wait for that.
  if (recorded && is_recorded(kNoAlgorithm, layer, task.direction)) return Decision::kNoAlgorithm;
  if (recorded
          ? !is_recorded(kLayers, layer, task.direction)
          : options_.policy == KernelPolicy::kBuiltin || (measured && products(shape, task) < kMinProducts))
    return Decision::kBuiltin;
  const auto& library = libraries().of(shape);
  const auto plan = library != nullptr ? library->plan(shape, task, kMaxWorkspace) : nullptr;
  if (plan == nullptr) {
    keeps_record_ = keeps_record_ && !recorded;
    return forced && library != nullptr ? Decision::kNoAlgorithm : Decision::kBuiltin;
  }
  if (measured && !library_is_faster(shape, task, *plan, library->name())) return Decision::kBuiltin;
  // Nothing was measured, so nobody has tried yet whether the library does what it has planned.
  if (forced && !tried(shape, task, *plan)) return Decision::kNoAlgorithm;
  task.deterministic = plan->deterministic();  // the plans for smaller batches then have to be, too
  return Decision::kLibrary;
}

template <class Shape>
bool KernelAutotuner::tried(const Shape& shape, const LibraryTask& task, const LibraryPlan& plan) const {
  try {
    use_device(options_.device);
    return library_runs(shape, task, plan);
  } catch (const DeviceError&) {
    return true;  // too little memory to try
  }
}

void KernelAutotuner::note(const std::string& layer, const LibraryTask& task, const std::string& library) {
  same_bits_ = same_bits_ && task.deterministic;
  used_.insert(library);
  layers_[layer].emplace_back(to_string(task.direction));
}

template <class Shape>
bool KernelAutotuner::library_is_faster(const Shape& shape, const LibraryTask& task, const LibraryPlan& plan,
                                        const std::string& library) {
  if (!options_.timer) return true;
  const auto measure = [&]() -> std::optional<Choice> {
    try {
      use_device(options_.device);
      const Comparison comparison = compare(shape, task, plan, options_.timer);
      return Choice{comparison.agree && comparison.library_seconds < comparison.builtin_seconds,
                    comparison.builtin_seconds, comparison.library_seconds};
    } catch (const DeviceError&) {
      return std::nullopt;  // too little memory; a worse error will come again
    }
  };
  const ChoiceCache cache(options_.choices);
  const auto choice = cache.find_or_measure(device_name() + ", " + library, text(shape, task), measure);
  return !choice || choice->library;
}

bool KernelAutotuner::may_fuse(const std::string& layer) const {
  if (options_.recorded.empty()) return options_.policy != KernelPolicy::kLibrary;
  return std::none_of(
      std::begin(kTrainingDirections), std::end(kTrainingDirections), [&](Direction direction) {
        return is_recorded(kLayers, layer, direction) || is_recorded(kNoAlgorithm, layer, direction);
      });
}

bool KernelAutotuner::is_recorded(const char* list, const std::string& layer, Direction direction) const {
  const auto entries = recorded_.find(list);
  return entries != recorded_.end() && entries->second.contains(entry(layer, to_string(direction)));
}

std::string KernelAutotuner::record() const {
  if (layers_.empty()) return kBuiltin;
  Json json = {{"device", device_name_}, {"libraries", used_}, {kLayers, layers_}};
  if (!no_algorithm_.empty()) json[kNoAlgorithm] = no_algorithm_;
  if (!same_bits_) json["same_bits"] = false;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Libraries& KernelAutotuner::libraries() {
  if (!libraries_) {
    device_name();
    libraries_ = shared_libraries(options_.device);
  }
  return *libraries_;
}

const std::string& KernelAutotuner::device_name() {
  if (device_name_.empty()) {
    const std::vector<DeviceInfo> devices = list_cuda_devices();
    const auto found = std::find_if(devices.begin(), devices.end(), [&](const DeviceInfo& info) {
      return info.device.index == options_.device;
    });
    if (found != devices.end()) device_name_ = found->description;
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
