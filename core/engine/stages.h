// Cuts a network into stages, runs of layers that different devices compute, and says in which order these
// work on the parts of a batch.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/device.h"
#include "core/engine/engine.h"
#include "core/engine/parallel.h"
#include "core/network/network.h"

namespace sweep {

/// Layers in a row, in the order of Network::layers(), and where they are computed.
struct Stage {
  std::size_t first_layer = 0, end_layer = 0;  // [first, end)
  Device device;
  friend bool operator==(const Stage&, const Stage&) = default;
};

/// The stages of `options.model`, or of `options.pipeline`; one stage on `device` if it has neither. Stages
/// cover all layers; a device may have several. A pipeline's stages are on devices of the kind of `device`,
/// from its index on; if only their number is given, their largest share of Network::training_flops() is as
/// small as it can be. Throws ConfigError for a pattern or name that no layer has, names out of order, and
/// more stages than layers.
std::vector<Stage> split_into_stages(const Network& network, const ParallelOptions& options,
                                     const Device& device);

/// Returns `stages` on the devices of replica number `replica`, from 0, of ParallelOptions::data. Each
/// replica has a set of devices: the first has those of `stages`, and the others' follow. Each set begins as
/// many devices after the previous one as there are from the lowest to the highest device of `stages`.
std::vector<Stage> stages_of_replica(std::vector<Stage> stages, int replica);

/// Why `network` cannot be trained on this machine with options.parallel and options.accumulation_steps, from
/// options.device on, which itself can be used; nothing if it can. Says what can be done instead. Throws as
/// split_into_stages(). Thread-safe.
std::optional<std::string> parallel_unavailable_reason(const Network& network, const EngineOptions& options);

/// The devices on which a run with `options` trains `network`, in ascending order. Throws as
/// split_into_stages().
std::vector<Device> training_devices(const Network& network, const EngineOptions& options);

/// Whether `name` is the pattern, or fits it as in a shell: * is any text, ? a character, [ab] one of two.
bool fits_pattern(const std::string& name, const std::string& pattern);

/// The lowest and the highest index of a device of `stages`, at least one.
std::pair<int, int> device_range(const std::vector<Stage>& stages);

/// The place of `device` among those that are known so far; it is one of them afterwards.
std::size_t place_of(const Device& device, std::vector<Device>& known);

/// One part of a batch on its way through one stage.
struct StageTask {
  std::size_t stage = 0, part = 0;
  bool backward = false;
  friend bool operator==(const StageTask&, const StageTask&) = default;
};

enum class PipelinePasses { kForward, kBackward, kBoth };

/// What each device does, in order. `devices`: of each stage, from 0. Every stage takes the
/// parts in their order, forward and back. A device that keeps to its order, and begins a task when that of
/// the stage before (forward) or after it (backward) is done, never waits for ever. With
/// kOneForwardOneBackward, stage s of S never has more than S − s parts that went forward and not back.
std::vector<std::vector<StageTask>> pipeline_order(std::span<const std::size_t> devices, std::size_t parts,
                                                   PipelineSchedule schedule, PipelinePasses passes);

}  // namespace sweep
