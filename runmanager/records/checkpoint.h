// checkpoint.safetensors: a network's weights under PyTorch's names, and everything else that training needs
// to be resumed.
//
// It is written after every epoch and decides which epochs of a run are finished: when the run is resumed,
// its other files are cut back to the checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/data/safetensors.h"
#include "core/engine/engine.h"
#include "core/network/network.h"
#include "runmanager/records/results.h"

namespace sweep {

/// The values in a network's state_dict.
struct Weights {
  std::vector<float> parameters;  // in the layout of Network::parameters()
  std::vector<float> buffers;     // in the layout of Network::buffers()
};

/// The state of training between two batches.
struct TrainingState {
  Weights weights;
  std::vector<OptimizerState> optimizer;
  std::int64_t step_count = 0;
};

TrainingState capture_state(const Engine& engine);
/// The inverse of capture_state(), for an engine of the same network and optimizer. Throws ConfigError for
/// another optimizer.
void restore_state(Engine& engine, const TrainingState& state);

struct Checkpoint {
  TrainingState state;
  RunProgress progress;
};

/// A metadata value as the file needs it.
struct MetadataText {
  std::string escaped;    // inside a JSON string, without the quotes
  std::uint32_t crc = 0;  // CRC-32C of the text itself
};

/// The metadata of a run's checkpoints. It is kept from one checkpoint to the next, because most of it stays:
/// only a line per epoch is appended, so the cost of a checkpoint does not grow with the number of epochs.
/// Belongs to one run.
struct CheckpointMetadata {
  MetadataText config, provenance;
  MetadataText epochs;  // one line of JSON per epoch
  std::size_t epoch_count = 0;
  int last_epoch = 0;    // from 1; 0: none is finished
  std::string progress;  // JSON: the rest of the record, and the position
};

/// Updates `metadata` to the current state of the run.
void update(CheckpointMetadata& metadata, const RunRecord& record, const RunPosition& position);

/// Replaces `path` atomically. Weights have their names in PyTorch's state_dict, so that torch can load them.
/// The optimizer's arrays are called "optimizer/<state>/<parameter>". Metadata: epoch (the last finished one,
/// from 1), step_count, config, provenance, epochs, progress, and checksums of all of them. Throws IoError,
/// and DataError for more epochs than the header has room for.
void write_checkpoint(const std::filesystem::path& path, const Network& network, const TrainingState& state,
                      const CheckpointMetadata& metadata, Survives survives);

/// Throws DataError if any bit of the file is damaged, if it is of another network, or if it has weights
/// only.
Checkpoint read_checkpoint(const std::filesystem::path& path, const Network& network);

/// The record of the run that wrote the checkpoint, with its finished epochs. Throws DataError if any bit of
/// the file is damaged. Needs no network.
RunRecord read_checkpoint_record(const std::filesystem::path& path);
/// The same for a file that has been read; messages do not name it. A file of weights only has no checksums
/// and passes.
void verify_checksums(const TensorFile& file);

/// The last finished epoch, from 1; none if the file does not say.
std::optional<int> last_epoch_of(const TensorFile& checkpoint);

/// The same of the checkpoint at `path`; none if the file is missing or any bit of it is damaged. Throws
/// ReadError if it cannot be read.
std::optional<int> whole_checkpoint_epoch(const std::filesystem::path& path);

/// Weights under the names of PyTorch's state_dict. The views are into the arguments.
TensorFileView tensors_of(const Network& network, const Weights& weights);

/// Whether the weights of the run's best epoch are there, if it has one. Those of the last epoch are the
/// checkpoint's own: a process may have ended before it gave them their other name. Throws ReadError.
bool has_best_epoch(const RunRecord& record, const std::filesystem::path& run_directory);

/// What is read from a file: weights, or also the state of an optimizer.
enum class FileUse { kWeights, kCheckpoint };

/// One line for each tensor that is missing, misshaped or unexpected. What is not read may be there, and
/// PyTorch's num_batches_tracked.
std::vector<std::string> misfits(const TensorFile& file, const Network& network, FileUse use);

/// Reads weights for `network` from a safetensors file. Throws DataError that lists all misfits(), or if the
/// file has checksums and is damaged.
Weights load_weights(const std::filesystem::path& path, const Network& network);

}  // namespace sweep
