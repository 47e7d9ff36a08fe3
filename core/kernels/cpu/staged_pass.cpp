#include "core/kernels/cpu/staged_pass.h"

#include <algorithm>

#include "core/engine/stages.h"
#include "core/kernels/cpu/partial_shares.h"

namespace sweep::cpu {
namespace {

PipelineOptions pipeline_of(const EngineOptions& options) {
  return options.parallel.pipeline.value_or(PipelineOptions{.micro_batches = 1});
}

// The device of each op, counted from 0 in the order in which the stages name them. Fused layers are where
// the first of them is.
std::vector<std::size_t> devices_of_ops(const Network& network, const EngineOptions& options,
                                        const Program& program) {
  const std::vector<Stage> stages = split_into_stages(network, options.parallel, options.device);
  std::vector<sweep::Device> devices;
  std::vector<std::size_t> device_of_op;
  for (std::size_t op = 0; op < program.op_count(); ++op) {
    const auto stage = std::ranges::find_if(
        stages, [&](const Stage& s) { return program.op(op).first_layer < s.end_layer; });
    device_of_op.push_back(place_of(stage->device, devices));
  }
  return device_of_op;
}

// Ops in a row on one device.
struct Segment {
  OpRange ops;
  std::size_t device;
};

std::vector<Segment> segments_of(const std::vector<std::size_t>& device_of_op, const OpRange& ops) {
  std::vector<Segment> segments;
  for (std::size_t op = ops.begin; op < std::min(ops.end, device_of_op.size()); ++op) {
    if (segments.empty() || segments.back().device != device_of_op[op])
      segments.push_back({{op, op}, device_of_op[op]});
    segments.back().ops.end = op + 1;
  }
  return segments;
}

void wait_until(WaitableCounter& counter, std::size_t value, SpinLimit& limit) noexcept {
  for (std::uint32_t now = counter.load(); now < value; now = counter.load())
    counter.wait_while_equal(now, limit);
}

}  // namespace

StagedPass::Device::Device(std::size_t threads, std::size_t scratch_floats)
    : pool(static_cast<int>(threads)) {
  for (std::size_t i = 0; i < threads; ++i) scratch.emplace_back(scratch_floats);
}

StagedPass::StagedPass(const Network& network, const EngineOptions& options, const Program& program,
                       std::size_t threads)
    : program_(program),
      device_of_op_(devices_of_ops(network, options, program)),
      pipeline_(pipeline_of(options)),
      progress_(segments_of(device_of_op_, {}).size()),
      drivers_(static_cast<int>(std::ranges::max(device_of_op_)) + 1) {
  const std::size_t devices = drivers_.size();
  for (std::size_t d = 0; d < devices; ++d) {
    const std::size_t own = part_begin(threads, devices, d + 1) - part_begin(threads, devices, d);
    devices_.push_back(std::make_unique<Device>(std::max<std::size_t>(own, 1), program.scratch_floats()));
  }
}

std::size_t StagedPass::workspace_count(const Network& network, const EngineOptions& options,
                                        const Program& program, std::size_t blocks) {
  const PipelineOptions pipeline = pipeline_of(options);
  const std::size_t parts = std::min(static_cast<std::size_t>(pipeline.micro_batches), blocks);
  if (program.phases() > 1 || pipeline.schedule == PipelineSchedule::kGpipe) return blocks;
  const std::size_t under_way = segments_of(devices_of_ops(network, options, program), {}).size();
  return std::min(blocks, under_way * ((blocks + parts - 1) / parts));
}

void StagedPass::run(std::size_t phase, PipelinePasses passes, std::size_t blocks, std::size_t partials,
                     const IndexRange& own, const Work& work) {
  const IndexRange own_blocks = blocks_of(blocks, partials, own);
  const std::size_t parts = std::min(static_cast<std::size_t>(pipeline_.micro_batches), own_blocks.size());
  if (parts == 0) return;
  const std::vector<Segment> segments = segments_of(device_of_op_, program_.phase_ops(phase));
  std::vector<std::size_t> devices(segments.size());
  std::ranges::transform(segments, devices.begin(), &Segment::device);
  const auto order = pipeline_order(devices, parts, pipeline_.schedule, passes);
  for (Progress& progress : progress_) {
    progress.forward.store(passes == PipelinePasses::kBackward ? static_cast<std::uint32_t>(parts) : 0);
    progress.backward.store(0);
  }
  const auto wait_for_input = [&](const StageTask& task, SpinLimit& limit) {
    if (!task.backward) {
      if (task.stage > 0) wait_until(progress_[task.stage - 1].forward, task.part + 1, limit);
    } else if (task.stage + 1 < segments.size()) {
      wait_until(progress_[task.stage + 1].backward, task.part + 1, limit);
    }  // The last stage goes back with what it has brought forward itself.
  };
  const auto run_task = [&](const StageTask& task, Device& device) {
    const std::size_t begin = own_blocks.begin + part_begin(own_blocks.size(), parts, task.part),
                      end = own_blocks.begin + part_begin(own_blocks.size(), parts, task.part + 1);
    const std::size_t first = part_of(blocks, partials, begin), last = part_of(blocks, partials, end - 1);
    device.pool.run(last + 1 - first, [&](std::size_t i, std::size_t thread) noexcept {
      const IndexRange of_partial = blocks_of(blocks, partials, {first + i, first + i + 1});
      for (std::size_t block = std::max(begin, of_partial.begin); block < std::min(end, of_partial.end);
           ++block)
        work({segments[task.stage].ops, task.backward, block, first + i, thread,
              device.scratch[thread].data()});
    });
  };
  drivers_.run(order.size(), [&](std::size_t d, std::size_t) noexcept {
    for (const StageTask& task : order[d]) {
      wait_for_input(task, devices_[d]->spin_limit);
      run_task(task, *devices_[d]);
      Progress& progress = progress_[task.stage];
      WaitableCounter& done = task.backward ? progress.backward : progress.forward;
      done.add(1);
      done.wake_all();
    }
  });
}

}  // namespace sweep::cpu
