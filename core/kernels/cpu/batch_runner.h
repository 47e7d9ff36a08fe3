// Takes batches through a program, block by block on several threads, and adds up what comes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "core/kernels/cpu/gradient_sum.h"
#include "core/kernels/cpu/program.h"
#include "core/kernels/cpu/simd/block.h"
#include "core/kernels/cpu/thread_pool.h"
#include "core/network/network.h"

namespace sweep::cpu {

inline std::size_t block_count(std::size_t images) { return (images + kLanes - 1) / kLanes; }

/// Not thread-safe. `network`, `program` and `pool` outlive it.
class BatchRunner {
 public:
  BatchRunner(const Network& network, const EngineOptions& options, Program& program, ThreadPool& pool);

  /// Forward and backward. `own`: parameters in the program's layout; `step`: optimizer steps taken before.
  void train(const Batch& batch, const float* parameters, std::int64_t step);
  /// Of the last batch's mean loss.
  const GradientSum& gradient() const { return gradient_; }
  void evaluate(const Batch& batch, const float* parameters);
  /// outputs: [batch.size()][classes].
  void predict(const Batch& batch, const float* parameters, std::span<float> outputs);
  /// See Engine::profile(). Changes nothing.
  std::vector<LayerProfile> profile(const Batch& batch, const float* parameters, std::int64_t step);

  /// Sums since the last call.
  Totals take_totals();

 private:
  // What one partial sum counts, padded so that threads do not share cache lines.
  struct alignas(64) PartialTotals {
    double loss = 0;
    std::int64_t correct = 0;
  };
  // Where a pass works.
  struct PassBuffers {
    std::span<Workspace> workspaces;  // one per thread; one per block where training goes in phases
    float* partials;
    std::size_t partial_count;
    std::span<PartialTotals> totals;
    double* op_seconds = nullptr;
  };

  /// A workspace as a thread uses it.
  Workspace& attach_scratch(Workspace& workspace, std::size_t thread) noexcept {
    workspace.scratch = scratch_[thread].data();
    return workspace;
  }
  bool multi_phase() const { return program_.phases() > 1; }
  void load(const Batch& batch, const Block& block, Workspace& workspace) const noexcept;
  void measure_loss(const Batch& batch, const Block& block, Workspace& workspace, bool training,
                    PartialTotals& totals) const noexcept;
  template <class Run>
  void run_training_pass(const PassBuffers& buffers, const Batch& batch, const float* parameters,
                         std::int64_t step, bool keep_running, Run run);
  template <class Finish>
  void evaluate_blocks(const Batch& batch, const float* parameters, Finish finish);
  std::size_t partial_count(std::size_t blocks) const;
  void add_totals(std::size_t partials, std::size_t samples);

  const Network& network_;
  const EngineOptions& options_;
  Program& program_;
  ThreadPool& pool_;
  std::size_t classes_, plane_;  // outputs; pixels of one channel
  std::size_t min_partials_;     // see partial_count()
  GradientSum gradient_;
  std::vector<Workspace> workspaces_;
  std::vector<AlignedBuffer> scratch_;  // one per thread: what its ops leave in the cache is used again
  std::vector<PartialTotals> totals_;   // one per partial sum
  Totals sums_;
};

}  // namespace sweep::cpu
