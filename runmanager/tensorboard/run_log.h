// What one run shows in TensorBoard: tags, session and pictures, as the rest of the world expects them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "core/network/network.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_builder.h"
#include "tbwriter/summary_writer.h"

namespace sweep {

/// Encoded grids of first batches. Runs of a sweep often begin with the same samples, so each grid is encoded
/// once. Not thread-safe.
class ImageGridCache {
 public:
  /// The grid of the first batch that `loader` will give, at most `limit` samples, 8 a row with 2 pixels
  /// between them; nothing if the samples are no pictures (1 or 3 channels). Does not disturb the loader.
  const tbwriter::EncodedImage* first_batch(const DataLoader& loader, std::size_t limit);

 private:
  // The data set (kept alive, so that its address means it alone) and the rows in the grid.
  using Key = std::pair<std::shared_ptr<const ImageSet>, std::vector<std::uint32_t>>;
  std::vector<std::pair<Key, tbwriter::EncodedImage>> grids_;  // the newest last; few are kept
};

/// Limits for Engine::count_parameters() that give the buckets of all other histograms.
std::span<const double> parameter_limits();

/// Writes the events of one run. Not thread-safe.
class RunLog {
 public:
  /// Opens the events file and writes the start of the session: hparams and the text of configuration and
  /// provenance, as far as run.log asks for them. Throws IoError.
  RunLog(const std::filesystem::path& directory, const Run& run, const nlohmann::ordered_json& provenance);

  /// Goes on with a run whose older files end where its checkpoint was made: opens a further file, without
  /// that start. No point of the older files has a step of `first_step` or above. Throws IoError.
  RunLog(const std::filesystem::path& directory, const Run& run, std::int64_t first_step);

  /// The layout of the Custom Scalars tab. For one run of a sweep only, the first: TensorBoard merges several
  /// badly.
  void layout();
  void graph(const Network& network);
  void images(const tbwriter::EncodedImage& grid);
  /// Time and memory of the graph's nodes in one step over `samples` samples.
  void profile(const Network& network, std::span<const LayerProfile> layers, std::int64_t samples, int epoch);

  /// The one point of Time/setup_seconds.
  void setup(double seconds);

  /// One point of every per-epoch chart, at step record.epoch.
  void epoch(const EpochRecord& record, std::optional<double> learning_rate);
  /// <parameter> and <parameter>.grad; `gradients` may be empty.
  void histograms(const Network& network, std::span<const float> values, std::span<const float> gradients,
                  int epoch);
  /// The same of values that were counted between parameter_limits().
  void histograms(const Network& network, const ParameterCounts& counts, int epoch);
  void batch(const Totals& totals, std::int64_t batch);
  void predictions(const Samples& samples, std::span<const float> outputs,
                   std::span<const std::string> class_names, std::string_view part, int epoch);
  void metrics(const std::map<std::string, double>& metrics);

  /// Throws IoError if anything written so far failed.
  void flush();
  /// How far the events reach once flush() has returned.
  tbwriter::FilePosition position() const;

  /// Ends the session (an interrupted one stays open, since it may go on), says the reason and closes the
  /// file.
  void close(RunStatus status, std::string_view reason);

 private:
  LogOptions options_;
  std::string device_;
  LossSpec loss_;
  bool session_ = false;
  tbwriter::SummaryWriter writer_;
};

}  // namespace sweep
