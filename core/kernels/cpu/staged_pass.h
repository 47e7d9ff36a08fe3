// A training pass over a batch whose layers are computed by several devices: groups of threads.
//
// Each device has ops in a row, one or more stages, and goes through the blocks of the batch part by part;
// core/engine/stages.h says in which order. Devices of the CPU share its memory, so nothing is copied
// between them: a block's workspace is used by one stage after the other. Every block does the same
// arithmetic as on one device, and every partial sum gets its blocks in the same order, so the bits are the
// same.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/stages.h"
#include "core/kernels/cpu/partial_shares.h"
#include "core/kernels/cpu/program.h"
#include "core/kernels/cpu/simd/block.h"
#include "core/kernels/cpu/thread_pool.h"
#include "core/network/network.h"

namespace sweep::cpu {

/// Not thread-safe: one thread owns it. `program` must outlive it.
class StagedPass {
 public:
  /// For batches of up to options.batch_size images. `threads` are shared by the devices; each has at least
  /// one. Throws as split_into_stages().
  StagedPass(const Network& network, const EngineOptions& options, const Program& program,
             std::size_t threads);

  /// Workspaces for the blocks that are done here, at most `blocks` at once: one per block, or, where parts
  /// go back early, of those that are under way.
  static std::size_t workspace_count(const Network& network, const EngineOptions& options,
                                     const Program& program, std::size_t blocks);

  /// What a device does with a block: ops in a row of the phase, in one direction.
  struct Step {
    OpRange ops;
    bool backward;
    std::size_t block, partial;  // in the batch
    std::size_t thread;          // of the device, from 0
    float* scratch;              // that thread's, Program::scratch_floats()
  };
  using Work = std::function<void(const Step& step)>;

  /// Takes the blocks of partial sums `own` through a phase, of a batch that has `blocks` in `partials`
  /// nearly equal runs. Calls work(step), which must not throw, from several threads, for different blocks;
  /// for those of a partial sum in their order, after what it is to do with the block before.
  void run(std::size_t phase, PipelinePasses passes, std::size_t blocks, std::size_t partials,
           const IndexRange& own, const Work& work);

 private:
  // How far ops in a row on one device have got in a pass: parts of the batch that are done.
  struct Progress {
    WaitableCounter forward, backward;
  };
  struct Device {
    Device(std::size_t threads, std::size_t scratch_floats);
    ThreadPool pool;
    std::vector<AlignedBuffer> scratch;  // one per thread
    SpinLimit spin_limit;                // of the thread that drives the device
  };

  const Program& program_;
  std::vector<std::size_t> device_of_op_;  // counted from 0 in the order of the stages
  PipelineOptions pipeline_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Progress> progress_;  // of each run of ops on one device
  ThreadPool drivers_;              // a thread per device
};

}  // namespace sweep::cpu
