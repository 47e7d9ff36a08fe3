// A network on CUDA devices that have its layers between them: one stage if a device has all.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/stages.h"
#include "core/kernels/cuda/device_runner.h"
#include "core/kernels/cuda/libraries/nccl.h"
#include "core/kernels/cuda/pipeline_stage.h"
#include "core/kernels/cuda/stage_round.h"
#include "core/kernels/cuda/stage_schedule.h"

namespace sweep::cuda {

/// One thread puts the work of all stages on their streams, in an order in which everything that a task waits
/// for is on its stream before it; the devices work at their own pace. Ops, their fusion and all sums are
/// those of a network on one device, and so are the bits.
///
/// Functions with the names of Engine's do the same, but do not check batches. Other sets of devices may
/// compute other shares of each batch: join() connects this one with them. All ranks agree on shares and
/// devices, and make the same calls in the same order. After join(), every function except abort() throws
/// CommunicatorError if another rank is lost. Only wait() and train() give up at the deadline: call wait()
/// before the others that wait for the devices. Not thread-safe.
class NetworkInStages {
 public:
  /// `shares`: what is computed here of each batch; join() comes before train() if these are not all.
  /// `fed_samples`: the max samples of a batch that are computed here. A stage without anything to compute is
  /// left out. options.parallel.pipeline says how the stages work on a batch. Throws as make_cuda_engine(),
  /// and DeviceError if the devices are different GPUs.
  NetworkInStages(const Network& network, const EngineOptions& options, const std::vector<Stage>& all,
                  const BatchShares& shares, std::size_t fed_samples);

  ~NetworkInStages();
  NetworkInStages(const NetworkInStages&) = delete;
  NetworkInStages& operator=(const NetworkInStages&) = delete;

  /// How many devices it is on, each counted once.
  std::size_t device_count() const;

  /// Joins each of its devices with that of the other ranks of `ranks`, which outlives this object, through
  /// `groups`, [device_count()]. Waits for all ranks.
  void join(std::span<const DeviceGroupId> groups, Communicator& ranks, const std::vector<int>& first_shares);

  /// Whether prepare() has done what is done once for a batch of so many samples.
  bool is_prepared(std::size_t samples) const { return rounds_.contains(samples); }

  /// Allocates all memory for such batches, makes the libraries' plans and, if there is room, keeps the
  /// batch's set on the devices; returns whether they have it. Must not be called while a device waits for
  /// another rank: wait() first.
  bool prepare(const Batch& batch);
  bool is_resident(const Batch& batch) const;
  /// Counts `set`, if the devices have it, as used now, so that the next one that comes evicts another.
  void keep(const std::shared_ptr<const TensorDataset>& set);

  /// One step. `own`: the samples that are computed here of a batch of `samples`, turn by turn.
  void train(const Batch& own, std::size_t samples, const StepInput& input);

  /// See DeviceRunner.
  std::size_t largest_pass() const { return stages_.front()->runner().largest_pass(); }
  void evaluate(Task task, const Batch& rows, const StepInput& input);
  void download_outputs(std::span<float> outputs) { stages_.back()->runner().download_outputs(outputs); }

  /// What all layers have used.
  const UsedLibraries& libraries() const { return libraries_; }
  /// The sums of each share that is computed here, as many of each; they are set to zero.
  std::vector<Totals> take_totals() { return stages_.back()->runner().take_totals(); }

  std::vector<float> array(const EngineArray& which);
  void set_array(const EngineArray& which, std::span<const float> values);

  /// Returns when the devices have nothing to do.
  void wait();
  /// Ends exchanges that wait for other ranks, see DeviceGroup::abort().
  void abort() noexcept;
  /// For how many seconds the devices have waited for other ranks, see PipelineStage; of
  /// several, the one that waited longest. After wait().
  double take_exchange_seconds();

 private:
  struct Plan {
    StageSchedule schedule;
    std::map<std::pair<std::size_t, bool>, std::vector<SegmentTask>> tasks;  // by micro-batches and training
  };

  void make_stages(const std::vector<Stage>& stages, std::size_t fed_samples);
  const std::vector<StageRound>& rounds(std::size_t samples);
  void feed(const Batch& batch, const StepInput& input);
  void run(Task task, const StageRound& round, bool waits);
  void wait_for_streams() noexcept;
  void leave() noexcept;

  const Network network_;
  const EngineOptions options_;
  RoundOptions rounds_of_;
  PipelineSchedule order_ = PipelineSchedule::kGpipe;
  UsedLibraries libraries_;
  std::vector<std::size_t> devices_;  // of each stage, from 0
  std::vector<std::unique_ptr<PipelineStage>> stages_;
  std::vector<std::unique_ptr<DeviceGroup>> groups_;       // by device; none without join()
  std::vector<Plan> plans_;                                // for evaluation; where ops need the whole batch
  std::map<std::size_t, std::vector<StageRound>> rounds_;  // by the samples of a batch
  std::set<std::size_t> trained_;
  StageRound evaluated_;  // the last
};

}  // namespace sweep::cuda
