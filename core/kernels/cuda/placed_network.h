// A network and the CUDA devices that it is on: one device, or several that have its layers between them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/stages.h"
#include "core/kernels/cuda/device_runner.h"
#include "core/kernels/cuda/libraries/nccl.h"

namespace sweep::cuda {

/// What an engine does with it is the same in both cases. The functions that are named as those of Engine do
/// the same, but check nothing of batches. Others of its kind may compute other parts of each batch: join()
/// connects it with them, whose rank r has the same parts, devices and order of calls. Then every function
/// but abort() throws CommunicatorError if another rank is lost, and of those that wait for the devices only
/// wait() gives up at the deadline: it comes before them. Not thread-safe.
class PlacedNetwork {
 public:
  PlacedNetwork() = default;
  virtual ~PlacedNetwork() = default;
  PlacedNetwork(const PlacedNetwork&) = delete;
  PlacedNetwork& operator=(const PlacedNetwork&) = delete;

  /// How many devices it is on, each counted once.
  virtual std::size_t device_count() const = 0;
  /// Joins each of its devices with that of the other ranks, through `groups`, [device_count()]. Waits for
  /// all ranks. `deadline`: in seconds, > 0.
  virtual void join(std::span<const DeviceGroupId> groups, int rank, const std::vector<int>& first_parts,
                    double deadline) = 0;

  /// Whether prepare() has done what is done once for a batch of so many samples.
  virtual bool is_prepared(std::size_t samples) const = 0;
  /// Allocates memory, loads kernels and, if there is room, keeps the batch's set on the devices; returns
  /// whether they have it. Nothing of it may be done while a device waits for another rank: wait() first.
  virtual bool prepare(const Batch& batch) = 0;
  virtual bool is_resident(const Batch& batch) const = 0;

  /// One step. `own`: the samples that are computed here of a batch of `samples`, turn by turn.
  virtual void train(const Batch& own, std::size_t samples, const StepInput& input) = 0;
  virtual void evaluate(const Batch& batch) = 0;
  /// See DeviceRunner.
  virtual void run_and_download(Task task, const Batch& batch, std::span<float> outputs) = 0;

  virtual const std::string& kernels() const = 0;
  /// Of each part that is computed here, the same number of sums, which are set to zero.
  virtual std::vector<DeviceTotals> take_totals() = 0;
  virtual std::vector<float> parameters() = 0;
  virtual void set_parameters(std::span<const float> values) = 0;
  virtual std::vector<float> buffers() = 0;
  virtual void set_buffers(std::span<const float> values) = 0;
  virtual std::vector<float> gradients() = 0;
  virtual std::vector<OptimizerState> optimizer_state() = 0;
  virtual void set_optimizer_state(std::span<const OptimizerState> state) = 0;

  /// Returns when the devices have nothing to do.
  virtual void wait() = 0;
  /// Ends exchanges that wait for other ranks, see DeviceGroup::abort().
  virtual void abort() noexcept = 0;
  /// For how many seconds the devices have waited for other ranks, see GroupExchange::take_seconds(); of
  /// several, the one that waited longest. After wait().
  virtual double take_exchange_seconds() = 0;
};

/// On one device, with steps as graphs. `parts`: what is computed here of each batch, of which other devices
/// compute the rest: join() comes before train(). `fed_samples`: the most samples of a batch that are. Throws
/// as make_cuda_engine().
std::unique_ptr<PlacedNetwork> make_network_on_device(const Network& network, const EngineOptions& options,
                                                      const Device& device, const GradientParts& parts,
                                                      std::size_t fed_samples);

/// On the devices of `stages`, or some of them: a stage without anything to compute is left out.
/// options.parallel.pipeline says how they work on a batch. join() only if `parts` are not all. Throws as the
/// above, and DeviceError if the devices are different GPUs.
std::unique_ptr<PlacedNetwork> make_network_in_stages(const Network& network, const EngineOptions& options,
                                                      const std::vector<Stage>& stages,
                                                      const GradientParts& parts, std::size_t fed_samples);

}  // namespace sweep::cuda
