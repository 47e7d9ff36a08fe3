// Runs batches through a program on several threads and sums their losses and gradients.
//
// A batch is cut into blocks of 16 images, and its blocks into `partial_count` contiguous runs. Each run is
// processed in order by one thread and has its own partial sums of the gradient and of the totals. The number
// of runs is a function of the batch size and the network; GradientSum then adds the partial gradients in a
// fixed tree. No sum depends on the number of threads or on timing, so neither do the bits of a training.
//
// Several devices share a batch: each runs some of the partial sums' blocks, PartialShares says which, and
// gathers what the others have: partial gradients and totals, and batch normalization's sums of blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "core/engine/engine_checks.h"
#include "core/engine/stages.h"
#include "core/kernels/cpu/gradient_sum.h"
#include "core/kernels/cpu/ops/batch_norm_op.h"
#include "core/kernels/cpu/partial_shares.h"
#include "core/kernels/cpu/program.h"
#include "core/kernels/cpu/simd/block.h"
#include "core/kernels/cpu/staged_pass.h"
#include "core/kernels/cpu/thread_pool.h"
#include "core/network/network.h"
#include "core/parallel/communicator.h"
#include "core/parallel/replicated_engine.h"

namespace sweep::cpu {

/// The buffers of a BatchRunner.
struct RunnerMemory {
  /// For batches of up to options.batch_size images and for `threads` threads of the device at `place`.
  RunnerMemory(const Network& network, const EngineOptions& options, const Program& program,
               std::size_t threads, DevicePlace place = {});

  GradientSum gradient;
  // One per thread; with several phases one per block of this device that is trained at once; with several
  // stages also of those that are under way.
  std::vector<Workspace> workspaces;
  std::vector<AlignedBuffer> scratch;  // one per thread, so that it stays in that core's cache
  std::vector<AlignedBuffer> numbers;  // one per thread: the targets of a block, [outputs][16]
};

/// Not thread-safe: one thread owns it. `network`, `options`, `program`, `pool` and `group` must outlive
/// it. With a group, its ranks make the same calls with the same batches. All memory is allocated in the
/// constructor, for batches of up to options.batch_size images; only profile() may allocate more
/// workspaces, with batch normalization, if it gets more blocks than are trained at once.
///
/// `parameters` are everywhere the network's parameters in the program's layout, program.parameter_floats()
/// long, after Program::prepare().
class BatchRunner {
 public:
  /// `group`: the devices that share the batches; nullptr: there is one.
  BatchRunner(const Network& network, const EngineOptions& options, Program& program, ThreadPool& pool,
              Communicator* group = nullptr);

  /// Forward and backward pass. `step`: optimizer steps taken so far, from 0; seeds dropout.
  void train(const Batch& batch, const float* parameters, std::int64_t step);
  /// Gradient of the mean loss of the last batch that train() saw.
  const GradientSum& gradient() const { return memory_.gradient; }
  /// Writes the network's outputs, [batch.size()][classes], if there is room. `measures`: adds the batch to
  /// the totals.
  void evaluate(const Batch& batch, const float* parameters, std::span<float> outputs, bool measures);
  /// See Engine::profile(). Leaves gradients, totals and running statistics as they are.
  std::vector<LayerProfile> profile(const Batch& batch, const float* parameters, std::int64_t step);

  /// Returns the sums over all batches since the last call, and clears them.
  Totals take_totals();

  /// See ReplicaEngine::sample_shares().
  const SampleShares& sample_shares(std::size_t samples, bool training);
  /// Returns for how many seconds other devices were waited for since the last call.
  double take_communication_seconds() { return std::exchange(communication_seconds_, 0.0); }

 private:
  // Totals of one partial sum, except how many samples there are. A cache line each, so that threads do not
  // write to the same one.
  struct alignas(64) PartialTotals : Totals {};
  // A training pass over some of a batch's partial sums.
  struct TrainingPass {
    const Batch& batch;
    const float* parameters;
    std::int64_t step;
    MeanScale mean;
    std::size_t partial_count;          // of the batch
    IndexRange all{}, own{};            // those that are trained at once, and this device's
    std::size_t first_own = 0;          // how many this device had before
    bool keep_running = false;          // does not update the running statistics
    double* op_seconds = nullptr;       // [op_count], added to; nullptr: no timing
    std::optional<std::size_t> turn{};  // of shares_; none: this device is alone, whatever the group

    IndexRange blocks_of(const IndexRange& partials) const {
      return cpu::blocks_of(block_count(batch.size()), partial_count, partials);
    }
    // Batch normalization counts the blocks that are trained at once.
    Block among_all(const Block& block) const { return {block.index - blocks_of(all).begin, block.images}; }
  };

  /// Gives the workspace the scratch memory of the thread that is about to use it.
  Workspace& attach_scratch(Workspace& workspace, std::size_t thread) noexcept {
    workspace.scratch = memory_.scratch[thread].data();
    return workspace;
  }
  bool multi_phase() const { return program_.phases() > 1; }
  void load(const Batch& batch, const Block& block, Workspace& workspace) const noexcept;
  void measure_loss(const Batch& batch, const Block& block, Workspace& workspace, const MeanScale& mean,
                    bool training, std::size_t thread, PartialTotals& totals) const noexcept;
  void compare_with_classes(const float* outputs, const std::int32_t* labels, std::size_t images,
                            const float* scale, float* loss, float* gradient,
                            PartialTotals& totals) const noexcept;
  template <class RunPhase>
  void run_phases(const TrainingPass& pass, RunPhase run_phase);
  float* gradient_of(const TrainingPass& pass, std::size_t part) const {
    return memory_.gradient.partials() +
           (pass.first_own + part - pass.own.begin) * program_.parameter_floats();
  }
  void clear(const TrainingPass& pass, std::size_t part) noexcept;
  void forward(const TrainingPass& pass, std::size_t phase, const OpRange& ops, const Block& block,
               Workspace& workspace, std::size_t part, std::size_t thread) noexcept;
  void backward(const TrainingPass& pass, std::size_t phase, const OpRange& ops, const Block& block,
                Workspace& workspace, std::size_t part) noexcept;
  void train_part(const TrainingPass& pass, std::size_t phase, PipelinePasses passes, std::size_t part,
                  std::size_t thread) noexcept;
  void train_in_stages(const TrainingPass& pass);
  void gather(std::span<const SharedArray> arrays);
  void gather_sums(const BlockSums& sums, const TrainingPass& pass);
  void gather_gradient();
  void gather_evaluation(const Batch& batch, std::span<float> outputs);
  void share_totals(const PartialShares& shares);
  void add_totals(std::size_t partials, const Batch& batch);

  const Network& network_;
  const EngineOptions& options_;
  Program& program_;
  ThreadPool& pool_;
  std::size_t outputs_, plane_;  // of the network; values of one channel of its input
  Communicator* group_;          // nullptr: this device is alone
  DevicePlace place_;
  mutable RunnerMemory memory_;
  std::optional<StagedPass> staged_;   // the devices, if there are several
  std::vector<PartialTotals> totals_;  // one per partial sum
  Totals sums_;
  PartialShares shares_, evaluation_shares_;  // of the batch
  SampleShares sample_shares_;
  std::vector<std::size_t> begins_, totals_begins_;  // of what is gathered
  std::vector<SharedArray> gathered_;
  double communication_seconds_ = 0;
};

}  // namespace sweep::cpu
