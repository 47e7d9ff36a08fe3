// A training pass over a batch whose layers are computed by several devices: groups of threads.
//
// Each device has ops in a row, one or more stages, and goes through the blocks of the batch part by part;
// core/engine/pipeline_order says in which order. Devices of the CPU share its memory, so nothing is copied
// between them: a block's workspace is used by one stage after the other. Every block does the same
// arithmetic as on one device, and every partial sum gets its blocks in the same order, so the bits are the
// same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/pipeline_order.h"
#include "core/kernels/cpu/adaptive_wait.h"
#include "core/kernels/cpu/partial_shares.h"
#include "core/kernels/cpu/program.h"
#include "core/kernels/cpu/simd/block.h"
#include "core/kernels/cpu/thread_pool.h"
#include "core/network/network.h"

namespace sweep::cpu {

/// What a pass does with a block besides the network's ops. Thread-safe for different blocks.
class BlockWork {
 public:
  BlockWork() = default;
  BlockWork(const BlockWork&) = delete;
  BlockWork& operator=(const BlockWork&) = delete;
  virtual ~BlockWork() = default;

  /// Writes the block's samples to workspace.input.
  virtual void load(const Block& block, Workspace& workspace) const noexcept = 0;
  /// Compares the outputs with the targets: adds to the totals of partial sum `part`, and writes
  /// Program::output_gradient(). `thread`: of the last stage's device, from 0.
  virtual void measure_loss(const Block& block, Workspace& workspace, std::size_t part,
                            std::size_t thread) const noexcept = 0;
  /// Lets this device have the sums that those it shares the batch with have of their blocks; see
  /// Program::forward_sums(). Called between the phases.
  virtual void gather(const BlockSums& sums) const = 0;
};

/// One batch to be trained on, or one's share of it.
struct StagedBatch {
  std::size_t images = 0;  // of the whole batch, >= 1
  Pass pass;               // training; first_image is set for each block
  const float* parameters;
  float* partials;            // gradients: [own.size()][parameter_floats], overwritten
  std::size_t partial_count;  // contiguous runs of the batch's blocks, see BatchRunner
  IndexRange all,
      own;  // partial sums that are trained in this pass, and those of them that are to be done here
};

/// Not thread-safe: one thread owns it. `program` must outlive it.
class StagedPass {
 public:
  /// For batches of up to options.batch_size images. `threads` are shared by the devices; each has at least
  /// one. Throws as split_into_stages().
  StagedPass(const Network& network, const EngineOptions& options, Program& program, std::size_t threads);

  /// Workspaces that run() needs: one per block, or, where parts go back early, of the
  /// blocks that are under way.
  /// `blocks`: that are to be done here at once, at most.
  static std::size_t workspace_count(const Network& network, const EngineOptions& options,
                                     const Program& program, std::size_t blocks);

  /// Forward and backward. `workspaces`: [workspace_count()].
  void run(const StagedBatch& batch, std::span<Workspace> workspaces, const BlockWork& work);

 private:
  // Ops in a row on one device, within one phase.
  struct Segment {
    OpRange ops;
    std::size_t device;
  };
  // How far a segment has got in a pass: parts of the batch that are done.
  struct Progress {
    WaitableCounter forward, backward;
  };
  struct Device {
    Device(std::size_t threads, std::size_t scratch_floats);
    ThreadPool pool;
    std::vector<AlignedBuffer> scratch;  // one per thread
    SpinLimit spin_limit;                // of the thread that drives the device
  };
  // What is done in one phase of a batch, in one or both directions.
  struct PhasePass {
    std::size_t phase = 0;
    PipelinePasses passes = PipelinePasses::kBoth;
    std::size_t parts = 0;  // of the batch
    std::vector<Segment> segments;
    std::vector<std::vector<StageTask>> order;  // of each device
  };

  std::vector<Segment> segments_of(std::size_t phase) const;
  PhasePass& plan(std::size_t phase, PipelinePasses passes, std::size_t parts);
  void run_phase(PhasePass& pass, const StagedBatch& batch, std::span<Workspace> workspaces,
                 const BlockWork& work);
  void run_task(const PhasePass& pass, const StageTask& task, const StagedBatch& batch,
                std::span<Workspace> workspaces, const BlockWork& work) noexcept;
  void wait_for(const PhasePass& pass, const StageTask& task) noexcept;
  void forward(const PhasePass& pass, const Segment& segment, const Block& block, const StagedBatch& batch,
               Workspace& workspace, std::size_t partial, std::size_t thread, const BlockWork& work) noexcept;
  float* gradient_of(const StagedBatch& batch, std::size_t partial) const;
  void clear_gradient(const OpRange& ops, const StagedBatch& batch, std::size_t partial) const noexcept;

  Program& program_;
  std::vector<std::size_t> device_of_op_;  // counted from 0 in the order of the stages
  std::size_t parts_;                      // of the largest batch
  PipelineSchedule schedule_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Progress> progress_;  // of each segment
  std::vector<PhasePass> plans_;    // those of the last batches, for the next of the same size
  PhasePass nothing_{};             // of a device that has no blocks of a batch
  ThreadPool drivers_;              // a thread per device
};

}  // namespace sweep::cpu
