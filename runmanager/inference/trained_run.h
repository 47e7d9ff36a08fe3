// A run that was trained, loaded from its directory: its network with the weights, and what its data were.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/data/dataset.h"
#include "core/data/sample_format.h"
#include "core/network/network.h"
#include "runmanager/config/run_config.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/results.h"

namespace sweep {

/// What a run's record says, without its weights.
struct RecordedRun {
  std::filesystem::path directory;
  RunRecord record;
  RunConfig config;  // with absolute paths
  SampleFormat samples;
  std::shared_ptr<const Network> network;
};

/// Reads the record of a run. `path`: its directory, its run.json, or a sweep with one completed run. Runs of
/// an earlier version did not record what their samples are: then their data set is loaded, if it is there.
/// `data`: where that is now, if it was moved. Throws DataError if there is no run, naming the best one of a
/// sweep with several; also for a run of a program with a training loop of its own, whose record has no
/// network.
RecordedRun read_run(const std::filesystem::path& path, const std::filesystem::path& data = {});

/// The last finished epoch's weights, or those of the best one.
enum class WhichWeights { kLast, kBest };

struct LoadedRun : RecordedRun {
  std::filesystem::path weights_file;
  Weights weights;
  int epoch = 0;  // whose weights these are, from 1
};

/// read_run() with weights: those asked for; by default the best epoch's if the run kept them, else the last.
/// Throws DataError if the run has no such checkpoint, or it is damaged.
LoadedRun load_run(const std::filesystem::path& path, std::optional<WhichWeights> which = std::nullopt,
                   const std::filesystem::path& data = {});

/// The data set that the run was trained on, or another with the same columns and classes, which are found
/// by name and numbered as the network knows them; see load_dataset_for(). `changed` is set to whether its
/// content is another one now, by the digests that the run recorded. Throws what load_dataset() throws.
Dataset load_data_of(const RecordedRun& run, bool& changed);

/// "runs/fashion/lr=0.01: weights of epoch 5", with what is remarkable: ", the best one", "(interrupted)".
std::string run_text(const LoadedRun& run);

}  // namespace sweep
