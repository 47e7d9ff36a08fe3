// The CPU engine: runs batches through a program on several threads and sums their losses and gradients.
// core/kernels/README.md explains the design.
//
// A batch is cut into blocks of 16 images, and its blocks into `partial_count` contiguous runs. Each run is
// processed in order by one thread and has its own partial sums of the gradient and of the totals. The number
// of runs is a function of the batch size and the network; GradientSum then adds the partial gradients in a
// fixed tree. No sum depends on the number of threads or on timing, so neither do the bits of a training.
//
// Several devices share a batch: each runs some of the partial sums' blocks, share_out() says which, and
// gathers what the others have: partial gradients and totals, and batch normalization's sums of blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

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
#include "core/parallel/communicator.h"
#include "core/parallel/replicated_engine.h"

namespace sweep::cpu {

/// The buffers of an engine.
struct EngineMemory {
  /// For batches of up to options.batch_size images and for `threads` threads of the device at `place`.
  EngineMemory(const Network& network, const EngineOptions& options, const Program& program,
               std::size_t threads, DevicePlace place = {});

  GradientSum partials;
  // As many per thread as go through the network together; with several phases one per block of this device
  // that is trained at once; with several stages also of those that are under way.
  std::vector<Workspace> workspaces;
  std::vector<AlignedBuffer> scratch;  // one per thread, so that it stays in that core's cache
  std::vector<AlignedBuffer> numbers;  // one per thread: the targets of a block, [outputs][16]
  // In the program's layout, as the partial gradients. `gradient`: of the mean loss of the last batch.
  AlignedBuffer parameters, gradient;
  std::vector<AlignedBuffer> state;  // of the optimizer
};

/// All memory is allocated in the constructor; only profile() may allocate more workspaces, with batch
/// normalization, if it gets more blocks than are trained at once.
class CpuEngine final : public ReplicaEngine {
 public:
  /// `group`, which must outlive it: the devices that share the batches; nullptr: there is one.
  CpuEngine(const Network& network, const EngineOptions& options, Communicator* group);

  void train(const Batch& batch, const StepValues& values) override;
  void evaluate(const Batch& batch, std::span<float> outputs, bool counts) override;
  std::vector<LayerProfile> profile(const Batch& batch) override;
  Totals take_totals() override { return std::exchange(sums_, {}); }
  std::optional<double> take_communication_seconds() override {
    const double seconds = std::exchange(communication_seconds_, 0.0);
    return group_ != nullptr ? std::optional(seconds) : std::nullopt;
  }
  const RankShares& sample_shares(std::size_t samples, bool training) override;

  std::vector<float> array(const EngineArray& which) const override;
  void set_array(const EngineArray& which, std::span<const float> values) override;
  std::vector<std::string> optimizer_arrays() const override { return state_names(options_.optimizer); }
  std::int64_t step_count() const override { return steps_; }
  void set_step_count(std::int64_t steps) override { steps_ = steps; }

 private:
  // Totals of one partial sum, except how many samples there are. A cache line each, so that threads do not
  // write to the same one.
  struct alignas(64) PartialTotals : Totals {};
  // A training pass over some of a batch's partial sums.
  struct TrainingPass {
    const Batch& batch;
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
  };

  void check(const Batch& batch) const { check_batch(batch, network_, options_.batch_size, options_.loss); }
  void prepare_ops();
  void step(double learning_rate);
  void update(std::size_t begin, std::size_t end, double learning_rate) noexcept;

  /// Calls work(blocks) for the blocks of one of `parts` nearly equal runs, a few at a time. With several
  /// phases a block has the workspace of its number among those from block `first` on, otherwise one of the
  /// thread's.
  template <class Work>
  void for_blocks(const Batch& batch, std::size_t parts, std::size_t part, std::size_t thread,
                  std::optional<std::size_t> first, const Work& work) noexcept;
  bool multi_phase() const { return program_.phases() > 1; }
  std::size_t partials_of(const Batch& batch) const {
    return partial_count(network_, program_, block_count(batch.size()));
  }
  void load(const Batch& batch, const Block& block) const noexcept;
  void measure_loss(const Batch& batch, const Block& block, const MeanScale& mean, bool training,
                    std::size_t thread, PartialTotals& totals) noexcept;
  void compare_with_classes(const float* outputs, const std::int32_t* labels, std::size_t images,
                            const float* scale, float* loss, float* gradient,
                            PartialTotals& totals) const noexcept;
  template <class RunPhase>
  void run_phases(const TrainingPass& pass, RunPhase run_phase);
  float* gradient_of(const TrainingPass& pass, std::size_t part) {
    return memory_.partials.partials() +
           (pass.first_own + part - pass.own.begin) * program_.parameter_floats();
  }
  void clear(const TrainingPass& pass, std::size_t part) noexcept;
  void forward(const TrainingPass& pass, std::size_t phase, const OpRange& ops, std::span<const Block> blocks,
               std::size_t part, std::size_t thread) noexcept;
  void backward(const TrainingPass& pass, std::size_t phase, const OpRange& ops,
                std::span<const Block> blocks, std::size_t part) noexcept;
  void train_part(const TrainingPass& pass, std::size_t phase, PipelinePasses passes, std::size_t part,
                  std::size_t thread) noexcept;
  void train_in_stages(const TrainingPass& pass);
  /// Forward and backward pass: all partial sums of the gradient, and the totals.
  void run_passes(const Batch& batch);
  void gather(std::span<const SharedArray> arrays);
  void gather_sums(const BlockSums& sums, const TrainingPass& pass);
  void gather_gradient();
  void gather_evaluation(const Batch& batch, std::span<float> outputs);
  void share_totals(const RankShares& shares);
  void add_totals(std::size_t partials, const Batch& batch);

  const Network network_;
  EngineOptions options_;
  Program program_;
  ThreadPool pool_;
  std::size_t outputs_, plane_;  // of the network; values of one channel of its input
  Communicator* group_;          // nullptr: this device is alone
  DevicePlace place_;
  EngineMemory memory_;
  std::optional<StagedPass> staged_;   // the devices, if there are several
  std::vector<PartialTotals> totals_;  // one per partial sum
  Totals sums_;
  RankShares shares_, evaluation_shares_, sample_shares_;  // of the batch's partial sums, and its samples
  std::vector<std::size_t> begins_, totals_begins_;        // of what is gathered
  std::vector<SharedArray> gathered_;
  double communication_seconds_ = 0;
  std::vector<double> norms_;  // squared norm of each part of the gradient; see step()
  std::int64_t steps_ = 0;     // taken so far
};

}  // namespace sweep::cpu

namespace sweep {

/// See make_engine(). `network` is copied.
std::unique_ptr<Engine> make_cpu_engine(const Network& network, const EngineOptions& options);

/// The engine of one rank of `group`; see MakeReplica.
std::unique_ptr<ReplicaEngine> make_cpu_replica(const Network& network, const EngineOptions& options,
                                                Communicator& group);

/// Bytes of the buffers of that engine, or of all of options.parallel.data; see engine_memory().
std::size_t cpu_engine_memory(const Network& network, const EngineOptions& options);

}  // namespace sweep
