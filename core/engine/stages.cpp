#include "core/engine/stages.h"

#include <fnmatch.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/suggest.h"

namespace sweep {
namespace {

// A layer inside of others also fits a pattern of theirs: "block1" fits "block1.conv1".
bool fits(const std::string& layer, const std::string& pattern) {
  for (std::size_t end = layer.size(); end != std::string::npos;
       end = end == 0 ? std::string::npos : layer.rfind('.', end - 1)) {
    if (fits_pattern(layer.substr(0, end), pattern)) return true;
  }
  return false;
}

[[noreturn]] void throw_unknown_layer(const Network& network, const std::string& where,
                                      const std::string& name) {
  std::vector<std::string> names;
  for (const Layer& layer : network.layers()) names.push_back(layer.name);
  std::string message = where + ": no layer fits \"" + name + "\", want one of ";
  for (const std::string& layer : names) message += (layer == names.front() ? "" : ", ") + layer;
  throw ConfigError(message + did_you_mean(nearest_name(name, names)));
}

// Neighbours on one device are one stage.
std::vector<Stage> stages_of_devices(const std::vector<Device>& devices) {
  std::vector<Stage> stages;
  for (std::size_t layer = 0; layer < devices.size(); ++layer) {
    if (stages.empty() || stages.back().device != devices[layer])
      stages.push_back({layer, layer, devices[layer]});
    stages.back().end_layer = layer + 1;
  }
  return stages;
}

std::vector<Stage> stages_of_model(const Network& network, const std::vector<LayerPlacement>& model) {
  std::vector<bool> used(model.size());
  const auto layers = network.layers();
  std::vector<Device> devices;
  Device device = parse_device(model.front().device);
  for (const Layer& layer : layers) {
    const auto found =
        std::ranges::find_if(model, [&](const LayerPlacement& p) { return fits(layer.name, p.layers); });
    if (found != model.end()) {
      device = parse_device(found->device);
      used[static_cast<std::size_t>(found - model.begin())] = true;
    }
    devices.push_back(device);
  }
  const auto unused = std::ranges::find(used, false);
  if (unused != used.end()) {
    const std::string& pattern = model[static_cast<std::size_t>(unused - used.begin())].layers;
    if (std::ranges::any_of(layers, [&](const Layer& layer) { return fits(layer.name, pattern); }))
      throw ConfigError("parallel.model: every layer that fits \"" + pattern +
                        "\" also fits an earlier pattern, which counts; want \"" + pattern + "\" before it");
    throw_unknown_layer(network, "parallel.model", pattern);
  }
  return stages_of_devices(devices);
}

// The first layers of `count` stages whose costs have the smallest maximum. Layers without a cost go with the
// one before them.
std::vector<std::size_t> balanced_stages(const std::vector<double>& costs, std::size_t count) {
  std::vector<std::size_t> layers;  // those with a cost
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (costs[i] > 0) layers.push_back(i);
  }
  const std::size_t n = layers.size();
  if (count > std::max<std::size_t>(n, 1))
    throw ConfigError("parallel.pipeline.stages: got " + std::to_string(count) + ", want at most " +
                      std::to_string(std::max<std::size_t>(n, 1)) +
                      ", the number of layers with multiplications");
  std::vector<double> sums(n + 1);
  for (std::size_t i = 0; i < n; ++i) sums[i + 1] = sums[i] + costs[layers[i]];
  // least[s][i]: the smallest maximum of s + 1 stages over the first i layers; begin[s][i]: where the last of
  // those stages begins.
  std::vector least(count, std::vector<double>(n + 1, std::numeric_limits<double>::infinity()));
  std::vector begin(count, std::vector<std::size_t>(n + 1));
  for (std::size_t i = 0; i <= n; ++i) least[0][i] = sums[i];
  for (std::size_t s = 1; s < count; ++s) {
    for (std::size_t i = s + 1; i <= n; ++i) {
      for (std::size_t b = s; b < i; ++b) {
        const double largest = std::max(least[s - 1][b], sums[i] - sums[b]);
        if (largest < least[s][i]) {
          least[s][i] = largest;
          begin[s][i] = b;
        }
      }
    }
  }
  std::vector<std::size_t> first(count);
  for (std::size_t s = count, end = n; s-- > 1;) {
    end = begin[s][end];
    first[s] = layers[end];
  }
  return first;
}

std::vector<std::size_t> named_stages(const Network& network, const std::vector<std::string>& names) {
  std::vector<std::size_t> first = {0};
  for (const std::string& name : names) {
    const auto layers = network.layers();
    const auto found =
        std::ranges::find_if(layers, [&](const Layer& layer) { return fits(layer.name, name); });
    if (found == layers.end()) throw_unknown_layer(network, "parallel.pipeline.stages", name);
    const auto index = static_cast<std::size_t>(found - layers.begin());
    if (index <= first.back())
      throw ConfigError("parallel.pipeline.stages: \"" + name + "\" is " +
                        (index == 0 ? "the first layer, with which the first stage begins anyway"
                                    : "not after the stage before it") +
                        ", want layers in the order of the network");
    first.push_back(index);
  }
  return first;
}

std::vector<std::size_t> pipeline_stages(const Network& network, const PipelineOptions& pipeline) {
  if (!pipeline.first_layers.empty()) return named_stages(network, pipeline.first_layers);
  std::vector<double> costs;
  for (const Layer& layer : network.layers()) costs.push_back(network.training_flops(layer));
  return balanced_stages(costs, static_cast<std::size_t>(std::max(1, pipeline.stages)));
}

std::optional<std::string> cuda_stages_unavailable_reason(const Network& network,
                                                          const EngineOptions& options) {
  const std::vector<Stage> stages = split_into_stages(network, options.parallel, options.device);
  for (const Stage& stage : stages) {
    if (stage.device.type != options.device.type)
      return "\"parallel.model\" has layers on " + stage.device.name() + ", want devices of the kind of " +
             options.device.name();
  }
  const int data = options.parallel.data;
  if (data > 1) {
    // Each set as if it were in a process of its own, because they are looked at below.
    if (auto reason = device_group_unavailable_reason(options.device, data, data)) return reason;
  }
  for (int replica = 0; replica < data; ++replica) {
    for (const Stage& stage : stages_of_replica(stages, replica)) {
      auto reason = unavailable_reason(stage.device);
      if (!reason) continue;
      if (data == 1) return reason;
      const Device last{options.device.type, device_range(stages_of_replica(stages, data - 1)).second};
      return *reason + "; \"parallel.data\": " + std::to_string(data) +
             " wants as many sets of devices as the layers are on, up to " + last.name();
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<Stage> split_into_stages(const Network& network, const ParallelOptions& options,
                                     const Device& device) {
  if (!options.model.empty()) return stages_of_model(network, options.model);
  const std::size_t layers = network.layers().size();
  if (!options.pipeline) return {{0, layers, device}};
  const std::vector<std::size_t> first = pipeline_stages(network, *options.pipeline);
  std::vector<Stage> stages;
  for (std::size_t s = 0; s < first.size(); ++s) {
    const std::size_t end = s + 1 < first.size() ? first[s + 1] : layers;
    stages.push_back({first[s], end, {device.type, device.index + static_cast<int>(s)}});
  }
  return stages;
}

std::vector<Stage> stages_of_replica(std::vector<Stage> stages, int replica) {
  const auto [lowest, highest] = device_range(stages);
  for (Stage& stage : stages) stage.device.index += replica * (highest - lowest + 1);
  return stages;
}

std::optional<std::string> parallel_unavailable_reason(const Network& network, const EngineOptions& options) {
  if (options.device.type == DeviceType::kCpu) return std::nullopt;
  if (!options.parallel.is_parallel()) return std::nullopt;
  if (options.parallel.has_stages()) return cuda_stages_unavailable_reason(network, options);
  return device_group_unavailable_reason(options.device, options.parallel.data);
}

std::vector<Device> training_devices(const Network& network, const EngineOptions& options) {
  const std::vector<Stage> stages = split_into_stages(network, options.parallel, options.device);
  std::vector<Device> devices;
  for (int replica = 0; replica < options.parallel.data; ++replica) {
    for (const Stage& stage : stages_of_replica(stages, replica)) place_of(stage.device, devices);
  }
  std::ranges::sort(devices, {}, &Device::index);
  return devices;
}

bool fits_pattern(const std::string& name, const std::string& pattern) {
  // fnmatch() also knows [sets], but a pattern may be a layer's name.
  return name == pattern || ::fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

std::pair<int, int> device_range(const std::vector<Stage>& stages) {
  const auto [lowest, highest] =
      std::ranges::minmax(stages, {}, [](const Stage& stage) { return stage.device.index; });
  return {lowest.device.index, highest.device.index};
}

std::size_t place_of(const Device& device, std::vector<Device>& known) {
  const auto found = std::ranges::find(known, device);
  const auto place = static_cast<std::size_t>(found - known.begin());
  if (found == known.end()) known.push_back(device);
  return place;
}

// Plays the pipeline with tasks that all take one tick.
std::vector<std::vector<StageTask>> pipeline_order(std::span<const std::size_t> devices, std::size_t parts,
                                                   PipelineSchedule schedule, PipelinePasses passes) {
  const bool is_eager =  // backward as soon as possible
      schedule == PipelineSchedule::kOneForwardOneBackward && passes == PipelinePasses::kBoth;
  const std::size_t stages = devices.size();
  // The parts that each stage has done, and those that it had before this tick.
  std::vector<std::size_t> forward(stages, passes == PipelinePasses::kBackward ? parts : 0), went(stages);
  std::vector<std::size_t> backward(stages, passes == PipelinePasses::kForward ? parts : 0),
      came_back(stages);
  // What the device can do after the tasks of earlier ticks; the stage that is furthest comes first.
  const auto next_task = [&](std::size_t device) -> std::optional<StageTask> {
    for (std::size_t stage = 0; stage < stages; ++stage) {
      const std::size_t part = came_back[stage];
      if (devices[stage] != device || part == parts) continue;
      const bool is_ready = stage + 1 == stages ? went[stage] > part : came_back[stage + 1] > part;
      if (is_ready && (is_eager || went[stage] == parts)) return StageTask{stage, part, true};
    }
    for (std::size_t stage = stages; stage-- > 0;) {
      const std::size_t part = went[stage];
      if (devices[stage] != device || part == parts) continue;
      const bool is_ready = stage == 0 || went[stage - 1] > part;
      const bool has_room = !is_eager || part - came_back[stage] < stages - stage;
      if (is_ready && has_room) return StageTask{stage, part, false};
    }
    return std::nullopt;
  };
  std::vector<std::vector<StageTask>> order(devices.empty() ? 0 : std::ranges::max(devices) + 1);
  for (bool is_done = false; !is_done;) {
    went = forward, came_back = backward;
    is_done = true;
    for (std::size_t device = 0; device < order.size(); ++device) {
      const auto task = next_task(device);
      if (!task) continue;
      ++(task->backward ? backward : forward)[task->stage];
      order[device].push_back(*task);
      is_done = false;
    }
  }
  return order;
}

}  // namespace sweep
