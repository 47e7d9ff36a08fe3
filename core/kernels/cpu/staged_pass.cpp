#include "core/kernels/cpu/staged_pass.h"

#include <algorithm>
#include <cstring>

#include "core/engine/stages.h"
#include "core/kernels/cpu/batch_runner.h"

namespace sweep::cpu {
namespace {

std::size_t parts_of(const EngineOptions& options) {
  return options.parallel.pipeline ? static_cast<std::size_t>(options.parallel.pipeline->micro_batches) : 1;
}

PipelineSchedule schedule_of(const EngineOptions& options) {
  return options.parallel.pipeline ? options.parallel.pipeline->schedule : PipelineSchedule::kGpipe;
}

// The device of each op, counted from 0 in the order in which the stages name them. Fused layers are where
// the first of them is.
std::vector<std::size_t> devices_of_ops(const Network& network, const EngineOptions& options,
                                        const Program& program) {
  const std::vector<Stage> stages = split_into_stages(network, options.parallel, options.device);
  std::vector<sweep::Device> devices;
  std::vector<std::size_t> device_of_op;
  for (std::size_t op = 0; op < program.op_count(); ++op) {
    const auto stage = std::find_if(stages.begin(), stages.end(),
                                    [&](const Stage& s) { return program.first_layer(op) < s.end_layer; });
    const auto known = std::find(devices.begin(), devices.end(), stage->device);
    device_of_op.push_back(static_cast<std::size_t>(known - devices.begin()));
    if (known == devices.end()) devices.push_back(stage->device);
  }
  return device_of_op;
}

std::size_t count_devices(const std::vector<std::size_t>& device_of_op) {
  return *std::max_element(device_of_op.begin(), device_of_op.end()) + 1;
}

std::size_t count_changes(const std::vector<std::size_t>& device_of_op) {
  std::size_t changes = 0;
  for (std::size_t op = 1; op < device_of_op.size(); ++op)
    changes += device_of_op[op] != device_of_op[op - 1] ? 1 : 0;
  return changes;
}

// The blocks of some of a batch's partial sums.
IndexRange blocks_of(const StagedBatch& batch, const IndexRange& partials) {
  const std::size_t blocks = block_count(batch.images);
  return {part_begin(blocks, batch.partial_count, partials.begin),
          part_begin(blocks, batch.partial_count, partials.end)};
}

// The block with its number among those of this pass.
Block among_all(const StagedBatch& batch, const Block& block) {
  return {block.index - blocks_of(batch, batch.all).begin, block.images};
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

StagedPass::StagedPass(const Network& network, const EngineOptions& options, Program& program,
                       std::size_t threads)
    : program_(program),
      device_of_op_(devices_of_ops(network, options, program)),
      parts_(parts_of(options)),
      schedule_(schedule_of(options)),
      progress_(count_changes(device_of_op_) + 1),
      drivers_(static_cast<int>(count_devices(device_of_op_))) {
  const std::size_t devices = drivers_.size();
  for (std::size_t d = 0; d < devices; ++d) {
    const std::size_t own = part_begin(threads, devices, d + 1) - part_begin(threads, devices, d);
    devices_.push_back(std::make_unique<Device>(std::max<std::size_t>(own, 1), program.scratch_floats()));
  }
}

std::size_t StagedPass::workspace_count(const Network& network, const EngineOptions& options,
                                        const Program& program, std::size_t blocks) {
  const std::size_t parts = std::min(parts_of(options), blocks);
  if (program.phases() > 1 || schedule_of(options) == PipelineSchedule::kGpipe) return blocks;
  const std::size_t under_way = count_changes(devices_of_ops(network, options, program)) + 1;
  return std::min(blocks, under_way * ((blocks + parts - 1) / parts));
}

std::vector<StagedPass::Segment> StagedPass::segments_of(std::size_t phase) const {
  const OpRange ops = program_.phase_ops(phase);
  std::vector<Segment> segments;
  for (std::size_t op = ops.begin; op < ops.end; ++op) {
    if (segments.empty() || segments.back().device != device_of_op_[op])
      segments.push_back({{op, op}, device_of_op_[op]});
    segments.back().ops.end = op + 1;
  }
  return segments;
}

StagedPass::PhasePass& StagedPass::plan(std::size_t phase, PipelinePasses passes, std::size_t parts) {
  if (parts == 0) return nothing_;
  const auto known = std::find_if(plans_.begin(), plans_.end(), [&](const PhasePass& pass) {
    return pass.phase == phase && pass.passes == passes && pass.parts == parts;
  });
  if (known != plans_.end()) return *known;
  PhasePass pass{phase, passes, parts, segments_of(phase), {}};
  std::vector<std::size_t> devices;
  for (const Segment& segment : pass.segments) devices.push_back(segment.device);
  pass.order = pipeline_order(devices, parts, schedule_, passes);
  return plans_.emplace_back(std::move(pass));
}

void StagedPass::run(const StagedBatch& batch, std::span<Workspace> workspaces, const BlockWork& work) {
  const std::size_t all = blocks_of(batch, batch.all).size(), last = program_.phases() - 1;
  const std::size_t parts = std::min(parts_, blocks_of(batch, batch.own).size());
  // Batch normalization adds to its gradients between the phases, so that they have to be zero before.
  if (last > 0) {
    devices_[0]->pool.run(batch.own.size(), [&](std::size_t i, std::size_t) noexcept {
      clear_gradient({0, program_.op_count()}, batch, batch.own.begin + i);
    });
  }
  for (std::size_t phase = 0; phase < last; ++phase) {
    run_phase(plan(phase, PipelinePasses::kForward, parts), batch, workspaces, work);
    work.gather(program_.forward_sums(phase));
    program_.finish_forward(phase, all, false);
  }
  run_phase(plan(last, PipelinePasses::kBoth, parts), batch, workspaces, work);
  const bool has_first = batch.own.size() > 0 && batch.own.begin == batch.all.begin;
  for (std::size_t phase = last; phase > 0; --phase) {
    work.gather(program_.backward_sums(phase));
    program_.finish_backward(phase, all, has_first ? batch.partials : nullptr);
    run_phase(plan(phase - 1, PipelinePasses::kBackward, parts), batch, workspaces, work);
  }
}

void StagedPass::run_phase(PhasePass& pass, const StagedBatch& batch, std::span<Workspace> workspaces,
                           const BlockWork& work) {
  for (Progress& progress : progress_) {
    progress.forward.store(pass.passes == PipelinePasses::kBackward ? static_cast<std::uint32_t>(pass.parts)
                                                                    : 0);
    progress.backward.store(0);
  }
  drivers_.run(pass.order.size(), [&](std::size_t device, std::size_t) noexcept {
    for (const StageTask& task : pass.order[device]) {
      wait_for(pass, task);
      run_task(pass, task, batch, workspaces, work);
      Progress& progress = progress_[task.stage];
      WaitableCounter& done = task.backward ? progress.backward : progress.forward;
      done.add(1);
      done.wake_all();
    }
  });
}

void StagedPass::wait_for(const PhasePass& pass, const StageTask& task) noexcept {
  SpinLimit& limit = devices_[pass.segments[task.stage].device]->spin_limit;
  if (!task.backward) {
    if (task.stage > 0) wait_until(progress_[task.stage - 1].forward, task.part + 1, limit);
  } else if (task.stage + 1 < pass.segments.size()) {
    wait_until(progress_[task.stage + 1].backward, task.part + 1, limit);
  }  // The last stage goes back with what it has brought forward itself.
}

void StagedPass::run_task(const PhasePass& pass, const StageTask& task, const StagedBatch& batch,
                          std::span<Workspace> workspaces, const BlockWork& work) noexcept {
  const Segment& segment = pass.segments[task.stage];
  Device& device = *devices_[segment.device];
  const std::size_t blocks = block_count(batch.images), partials = batch.partial_count;
  const IndexRange own = blocks_of(batch, batch.own);
  const std::size_t begin = own.begin + part_begin(own.size(), pass.parts, task.part),
                    end = own.begin + part_begin(own.size(), pass.parts, task.part + 1);
  const std::size_t first = part_of(blocks, partials, begin),
                    count = part_of(blocks, partials, end - 1) + 1 - first;
  device.pool.run(count, [&](std::size_t i, std::size_t thread) noexcept {
    const std::size_t partial = first + i, partial_begin = part_begin(blocks, partials, partial);
    const std::size_t stop = std::min(end, part_begin(blocks, partials, partial + 1));
    for (std::size_t index = std::max(begin, partial_begin); index < stop; ++index) {
      const Block block{index, std::min(kLanes, batch.images - index * kLanes)};
      Workspace& workspace = workspaces[(index - own.begin) % workspaces.size()];
      workspace.scratch = device.scratch[thread].data();
      if (!task.backward) {
        forward(pass, segment, block, batch, workspace, partial, thread, work);
        continue;
      }
      if (program_.phases() == 1 && index == partial_begin) clear_gradient(segment.ops, batch, partial);
      program_.backward(pass.phase, among_all(batch, block), batch.parameters, workspace,
                        gradient_of(batch, partial), nullptr, segment.ops);
    }
  });
}

void StagedPass::forward(const PhasePass& pass, const Segment& segment, const Block& block,
                         const StagedBatch& batch, Workspace& workspace, std::size_t partial,
                         std::size_t thread, const BlockWork& work) noexcept {
  if (pass.phase == 0 && segment.ops.begin == 0) work.load(block, workspace);
  Pass settings = batch.pass;
  settings.first_image = block.index * kLanes;
  program_.forward(pass.phase, settings, among_all(batch, block), batch.parameters, workspace, nullptr,
                   segment.ops);
  const bool has_outputs = pass.phase + 1 == program_.phases() && segment.ops.end == program_.op_count();
  if (has_outputs) work.measure_loss(block, workspace, partial, thread);
}

float* StagedPass::gradient_of(const StagedBatch& batch, std::size_t partial) const {
  return batch.partials + (partial - batch.own.begin) * program_.parameter_floats();
}

void StagedPass::clear_gradient(const OpRange& ops, const StagedBatch& batch,
                                std::size_t partial) const noexcept {
  const std::size_t begin = program_.parameter_offset(ops.begin), end = program_.parameter_offset(ops.end);
  std::memset(gradient_of(batch, partial) + begin, 0, (end - begin) * sizeof(float));
}

}  // namespace sweep::cpu
