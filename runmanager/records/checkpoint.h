// checkpoint.safetensors: a network's weights under PyTorch's names, with all that training goes on from.
//
// It is written after every epoch and is what decides which epochs of a run are finished: the rest of the
// run's files is cut back to it when the run is resumed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/data/safetensors.h"
#include "core/engine/engine.h"
#include "core/network/network.h"
#include "runmanager/records/results.h"

namespace sweep {

/// Values of a network, as its state_dict in PyTorch holds them.
struct Weights {
  std::vector<float> parameters;  // in the layout of Network::parameters()
  std::vector<float> buffers;     // in the layout of Network::buffers()
};

/// Everything that training goes on from.
struct TrainingState {
  Weights weights;
  std::vector<OptimizerState> optimizer;
  std::int64_t step_count = 0;
  std::string kernels = {};  // Engine::kernels(), so that the bits stay the same
};

TrainingState capture_state(const Engine& engine);
/// The inverse of capture_state(), for an engine of the same network and optimizer. Throws ConfigError for
/// another optimizer. Leaves the kernels, which an engine is made with.
void restore_state(Engine& engine, const TrainingState& state);

struct Checkpoint {
  TrainingState state;
  RunProgress progress;
};

/// A text as it stands in a file's metadata.
struct MetadataText {
  std::string text;
  std::string escaped;    // the same as JSON has it between quotes
  std::uint32_t crc = 0;  // CRC-32C of `text`
};

/// What a checkpoint says of its run. Kept from one to the next, so that not all of it is written out for
/// each: the settings stay, and each epoch adds a record. Of one run only.
struct CheckpointTexts {
  MetadataText config, provenance;
  MetadataText epochs;  // a line of JSON for each
  std::size_t epoch_count = 0;
  int last_epoch = -1;
  std::string progress;  // the rest of the record, and the position; JSON
};

/// Brings `texts` to where the run is now.
void update(CheckpointTexts& texts, const RunRecord& record, const RunPosition& position);

/// Replaces `path` atomically. Weights are called as in PyTorch's state_dict, so torch loads them as they
/// are; the optimizer's arrays are "optimizer/<state>/<parameter>". Metadata: epoch (the last finished one,
/// from 0), step_count, kernels (if the engine chose any), config, provenance, epochs, progress, and
/// checksums of all that. Throws IoError.
void write_checkpoint(const std::filesystem::path& path, const Network& network, const TrainingState& state,
                      const CheckpointTexts& texts, Survives survives);

/// Throws DataError if the file is damaged in any bit, is not of `network`, or lacks what training goes on
/// from.
Checkpoint read_checkpoint(const std::filesystem::path& path, const Network& network);

/// Throws DataError if any bit of the file is damaged. Needs no network.
void verify_checkpoint(const std::filesystem::path& path);

/// Engine::kernels() of a checkpoint's engine; "" if it had nothing to choose.
std::string kernels_of(const TensorFile& checkpoint);

/// Reads weights for `network` from a safetensors file; optimizer state, and PyTorch's counts of batches
/// (num_batches_tracked), are left out. Throws DataError that lists every missing, unexpected and misshaped
/// tensor.
Weights load_weights(const std::filesystem::path& path, const Network& network);

}  // namespace sweep
