// checkpoint.safetensors: a network's weights under PyTorch's names, with the optimizer's state beside them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/network/network.h"

namespace sweep {

/// Everything that training goes on from.
struct TrainingState {
  std::vector<float> parameters;  // in the layout of Network::parameters()
  std::vector<OptimizerState> optimizer;
  std::int64_t step_count = 0;
  int epoch = 0;  // the last finished one, from 0
};

TrainingState capture_state(const Engine& engine, int epoch);

/// Replaces `path` atomically. Weights are called as in PyTorch's state_dict, so torch loads them as they
/// are; the optimizer's arrays are "optimizer/<state>/<parameter>". Metadata: epoch, step_count and config.
/// Throws IoError.
void write_checkpoint(const std::filesystem::path& path, const Network& network, const TrainingState& state,
                      const std::string& config);

/// Reads weights for `network` from a safetensors file, in the layout of Network::parameters(); optimizer
/// state is left out. Throws DataError that lists every missing, unexpected and misshaped tensor.
std::vector<float> load_weights(const std::filesystem::path& path, const Network& network);

}  // namespace sweep
