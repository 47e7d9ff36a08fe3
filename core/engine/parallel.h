// How one network is trained on several devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_names.h"

namespace sweep {

/// In which order the stages of a pipeline work on the parts of a batch.
enum class PipelineSchedule {
  kGpipe,                 // all parts forward, then all parts back
  kOneForwardOneBackward  // a stage goes back with a part as soon as it can, so that fewer are under way
};

inline const EnumNames<PipelineSchedule>& pipeline_schedule_names() {
  static const EnumNames<PipelineSchedule> names("schedule", {"gpipe", "1f1b"});
  return names;
}

/// Layers in a row are a stage; a batch is cut into parts, and different stages work on different parts.
struct PipelineOptions {
  int stages = 0;  // >= 1; 0: `first_layers`, or the devices of ParallelOptions::model
  std::vector<std::string> first_layers = {};  // names of the layers that stages begin with, except the first
  int micro_batches = 4;                       // parts of a batch, >= 1
  PipelineSchedule schedule = PipelineSchedule::kGpipe;
  friend bool operator==(const PipelineOptions&, const PipelineOptions&) = default;
};

/// Layers and the device that computes them.
struct LayerPlacement {
  std::string layers = {};  // a name, or a pattern with * and ?: "conv*"
  std::string device = {};  // "cpu:0", "cuda:1"
  friend bool operator==(const LayerPlacement&, const LayerPlacement&) = default;
};

/// Devices that train one network together. Whichever they are, the bits are those of one device; for an
/// exception see EngineOptions::accumulation_steps.
struct ParallelOptions {
  int data = 1;                            // devices, or sets of them, that share each batch; >= 1
  std::vector<LayerPlacement> model = {};  // the first that fits counts; empty: one device has all layers
  std::optional<PipelineOptions> pipeline = {};  // none: the whole batch goes from layer to layer
  friend bool operator==(const ParallelOptions&, const ParallelOptions&) = default;

  bool has_stages() const { return !model.empty() || pipeline.has_value(); }
  /// Whether more than one device takes part.
  bool is_parallel() const { return data > 1 || has_stages(); }
};

inline constexpr int kMaxReplicas = 1024;  // of ParallelOptions::data; more is a typing error

}  // namespace sweep
