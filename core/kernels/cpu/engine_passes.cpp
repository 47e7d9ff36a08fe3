// How the CPU engine runs a batch: load, forward, loss, backward, and what devices exchange.
#include "core/kernels/cpu/cpu_engine.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "core/kernels/cpu/kernels/sample_kernels.h"

namespace sweep::cpu {
namespace {

// Block `index` of the batch.
Block make_block(const Batch& batch, std::size_t index, bool is_first, Workspace& workspace) {
  const std::size_t first_image = index * kLanes;
  return {index, std::min(kLanes, batch.size() - first_image), first_image, is_first, &workspace};
}

// The row of a lane's sample. Lanes beyond the end of the batch repeat its last sample.
std::size_t row_of(const Batch& batch, const Block& block, std::size_t lane) {
  return batch.indices[block.first_image + std::min(lane, block.images - 1)];
}

// Has `load` write the samples of a block to `out`, of a set that has `values` values of each sample.
template <class T, class LoadBlock>
void load_block(const Batch& batch, const Block& block, std::span<const T> set, std::size_t values,
                const LoadBlock& load, float* out) noexcept {
  const T* pointers[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    pointers[lane] = set.data() + row_of(batch, block, lane) * values;
  load(pointers, values, out);
}

// begins[i] = map(of[i])
template <class Map>
void map_begins(std::span<const std::size_t> of, std::vector<std::size_t>& begins, Map map) {
  begins.resize(of.size());
  std::ranges::transform(of, begins.begin(), map);
}

}  // namespace

template <class Work>
void CpuEngine::for_blocks(const Batch& batch, std::size_t parts, std::size_t part, std::size_t thread,
                           std::optional<std::size_t> first, const Work& work) noexcept {
  const IndexRange range = cpu::blocks_of(block_count(batch.size()), parts, {part, part + 1});
  const std::size_t at_once = program_.blocks_at_once();
  std::array<Block, kMaxBlocksAtOnce> blocks;
  for (std::size_t begin = range.begin; begin < range.end; begin += at_once) {
    const std::size_t count = std::min(at_once, range.end - begin);
    for (std::size_t i = 0; i < count; ++i) {
      Workspace& workspace = memory_.workspaces[first ? begin + i - *first : thread * at_once + i];
      workspace.scratch = memory_.scratch[thread].data();
      blocks[i] = make_block(batch, begin + i, begin + i == range.begin, workspace);
    }
    work(std::span(blocks).first(count));
  }
}

// Lanes beyond the end of the batch repeat its last image; measure_loss() gives them a gradient of zero.
void CpuEngine::load(const Batch& batch, const Block& block) const noexcept {
  Workspace& workspace = *block.workspace;
  const std::size_t values = program_.input_elements();
  if (const auto* floats = std::get_if<std::span<const float>>(&batch.samples)) {
    load_block(batch, block, *floats, values, load_floats, workspace.input());
  } else {
    load_block(batch, block, *std::get_if<std::span<const std::uint8_t>>(&batch.samples), values, load_pixels,
               workspace.input());
  }
  if (!options_.transform.mean.empty()) {
    normalize_pixels(options_.transform.mean, options_.transform.std, plane_, workspace.input());
  }
}

void CpuEngine::measure_loss(const Batch& batch, const Block& block, const MeanScale& mean, bool training,
                             std::size_t thread, PartialTotals& totals) noexcept {
  Workspace& workspace = *block.workspace;
  alignas(64) float scale[kLanes], loss[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) scale[lane] = lane < block.images ? mean.gradient : 0.0f;
  const float* outputs = program_.outputs(workspace);
  float* gradient = training ? program_.output_gradient(workspace) : nullptr;
  if (const auto* labels = std::get_if<std::span<const std::int32_t>>(&batch.targets)) {
    alignas(64) std::int32_t block_labels[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      block_labels[lane] = (*labels)[row_of(batch, block, lane)];
    compare_with_classes(outputs, block_labels, block.images, scale, loss, gradient, totals);
  } else {
    float* numbers = memory_.numbers[thread].data();  // [outputs][16]
    load_block(batch, block, *std::get_if<std::span<const float>>(&batch.targets), outputs_, load_floats,
               numbers);
    pointwise_loss(options_.loss, outputs, {.labels = nullptr, .numbers = numbers}, outputs_, scale, loss,
                   gradient);
    alignas(64) float absolute[kLanes], squared[kLanes];
    number_errors(outputs, numbers, outputs_, options_.loss.kind == LossOptions::Kind::kBceWithLogits,
                  absolute, squared);
    for (std::size_t i = 0; i < block.images; ++i) {
      totals.absolute_error += static_cast<double>(absolute[i]);
      totals.squared_error += static_cast<double>(squared[i]);
    }
  }
  for (std::size_t i = 0; i < block.images; ++i) totals.loss += static_cast<double>(loss[i]) * mean.loss;
}

void CpuEngine::compare_with_classes(const float* outputs, const std::int32_t* labels, std::size_t images,
                                     const float* scale, float* loss, float* gradient,
                                     PartialTotals& totals) const noexcept {
  alignas(64) std::int32_t predicted[kLanes];
  if (options_.loss.kind == LossOptions::Kind::kCrossEntropy) {
    const std::vector<float>& weights = options_.loss.class_weights;
    cross_entropy(outputs, labels, outputs_, static_cast<float>(options_.loss.label_smoothing),
                  weights.empty() ? nullptr : weights.data(), scale, loss, predicted, gradient);
  } else {
    pointwise_loss(options_.loss, outputs, {.labels = labels, .numbers = nullptr}, outputs_, scale, loss,
                   gradient);
    predict_classes(outputs, outputs_, predicted);
  }
  for (std::size_t i = 0; i < images; ++i) totals.correct += predicted[i] == labels[i] ? 1 : 0;
  if (!counts_top(outputs_)) return;
  alignas(64) std::int32_t ranks[kLanes];
  rank_labels(outputs, labels, outputs_, ranks);
  for (std::size_t i = 0; i < images; ++i) totals.in_top += ranks[i] < kTopClasses ? 1 : 0;
}

// Calls run_phase(phase, passes), which takes all blocks of this device through a phase.
//
// With one phase a block goes forward and back while its workspace is in the cache. With several, all blocks
// finish a phase before any starts the next, as batch normalization needs sums over the whole batch.
template <class RunPhase>
void CpuEngine::run_phases(const TrainingPass& pass, RunPhase run_phase) {
  const std::size_t blocks = pass.blocks_of(pass.all).size(), last = program_.phases() - 1;
  for (std::size_t phase = 0; phase < last; ++phase) {
    run_phase(phase, PipelinePasses::kForward);
    BatchNormOp& norm = *program_.batch_norm(phase).batch_norm;
    gather_sums(norm.moments(), pass);
    norm.finish_moments(blocks, pass.keep_running);
  }
  run_phase(last, PipelinePasses::kBoth);
  const bool has_first = pass.own.size() > 0 && pass.own.begin == pass.all.begin;
  for (std::size_t phase = last; phase > 0; --phase) {
    const CompiledOp& norm = program_.batch_norm(phase - 1);
    gather_sums(norm.batch_norm->sums(), pass);
    norm.batch_norm->finish_sums(blocks,
                                 has_first ? gradient_of(pass, pass.own.begin) + norm.parameters : nullptr);
    run_phase(phase - 1, PipelinePasses::kBackward);
  }
}

void CpuEngine::clear(const TrainingPass& pass, std::size_t part) noexcept {
  program_.clear_gradient(gradient_of(pass, part));
  totals_[part] = {};
}

void CpuEngine::forward(const TrainingPass& pass, std::size_t phase, const OpRange& ops,
                        std::span<const Block> blocks, std::size_t part, std::size_t thread) noexcept {
  for (const Block& block : blocks) {
    if (phase == 0 && ops.begin == 0) load(pass.batch, block);
  }
  program_.forward(phase, {true, options_.seed, steps_}, blocks, memory_.parameters.data(), pass.op_seconds,
                   ops);
  if (phase + 1 < program_.phases() || ops.end < program_.op_count()) return;
  for (const Block& block : blocks) measure_loss(pass.batch, block, pass.mean, true, thread, totals_[part]);
}

void CpuEngine::backward(const TrainingPass& pass, std::size_t phase, const OpRange& ops,
                         std::span<const Block> blocks, std::size_t part) noexcept {
  program_.backward(phase, blocks, memory_.parameters.data(), gradient_of(pass, part), pass.op_seconds, ops);
}

// Takes the blocks of a partial sum through a phase.
void CpuEngine::train_part(const TrainingPass& pass, std::size_t phase, PipelinePasses passes,
                           std::size_t part, std::size_t thread) noexcept {
  std::optional<std::size_t> first;
  if (multi_phase()) first = pass.blocks_of(pass.own).begin;
  if (phase == 0 && passes != PipelinePasses::kBackward) clear(pass, part);
  for_blocks(pass.batch, pass.partial_count, part, thread, first, [&](std::span<Block> blocks) {
    for (Block& block : blocks) block.index -= pass.blocks_of(pass.all).begin;
    if (passes != PipelinePasses::kBackward) forward(pass, phase, {}, blocks, part, thread);
    if (passes != PipelinePasses::kForward) backward(pass, phase, {}, blocks, part);
  });
}

void CpuEngine::run_passes(const Batch& batch) {
  const std::size_t partials = partials_of(batch);
  share_out(partials, turns_of(options_, program_), place_.count, shares_);
  memory_.partials.begin(shares_);
  TrainingPass pass{batch, mean_scale(batch, options_.loss, true), partials};
  for (std::size_t turn = 0; turn < shares_.turns(); ++turn) {
    pass.turn = turn;
    pass.all = range_of(shares_, turn);
    pass.own = range_of(shares_, turn, place_.rank);
    if (staged_) {
      train_in_stages(pass);
    } else {
      run_phases(pass, [&](std::size_t phase, PipelinePasses passes) {
        pool_.run(pass.own.size(), [&](std::size_t index, std::size_t thread) noexcept {
          train_part(pass, phase, passes, pass.own.begin + index, thread);
          if (phase == 0 && passes != PipelinePasses::kForward)
            memory_.partials.finish_partial(pass.first_own + index);
        });
      });
    }
    pass.first_own += pass.own.size();
  }
  gather_gradient();
  add_totals(partials, batch);
}

void CpuEngine::train_in_stages(const TrainingPass& pass) {
  pool_.run(pass.own.size(),
            [&](std::size_t index, std::size_t) noexcept { clear(pass, pass.own.begin + index); });
  const std::size_t blocks = block_count(pass.batch.size()), first = pass.blocks_of(pass.own).begin;
  run_phases(pass, [&](std::size_t phase, PipelinePasses passes) {
    staged_->run(phase, passes, blocks, pass.partial_count, pass.own, [&](const StagedPass::Step& step) {
      Workspace& workspace = memory_.workspaces[(step.block - first) % memory_.workspaces.size()];
      workspace.scratch = step.scratch;
      const IndexRange partial = cpu::blocks_of(blocks, pass.partial_count, {step.partial, step.partial + 1});
      Block block = make_block(pass.batch, step.block, step.block == partial.begin, workspace);
      block.index -= pass.blocks_of(pass.all).begin;
      if (step.backward) {
        backward(pass, phase, step.ops, {&block, 1}, step.partial);
      } else {
        forward(pass, phase, step.ops, {&block, 1}, step.partial, step.thread);
      }
    });
  });
  pool_.run(pass.own.size(), [&](std::size_t index, std::size_t) noexcept {
    memory_.partials.finish_partial(pass.first_own + index);
  });
}

void CpuEngine::evaluate(const Batch& batch, std::span<float> outputs, bool counts) {
  check(batch);
  check_outputs(outputs, batch, network_, counts);
  const MeanScale mean = counts ? mean_scale(batch, options_.loss, false) : MeanScale{};
  const std::size_t partials = partials_of(batch);
  share_out(partials, 1, place_.count, evaluation_shares_);
  const IndexRange own = range_of(evaluation_shares_, 0, place_.rank);
  pool_.run(std::min(own.size(), block_count(batch.size())),
            [&](std::size_t index, std::size_t thread) noexcept {
              const std::size_t part = own.begin + index;
              totals_[part] = {};
              for_blocks(batch, partials, part, thread, {}, [&](std::span<const Block> blocks) {
                for (const Block& block : blocks) load(batch, block);
                program_.evaluate({false, options_.seed, 0}, memory_.parameters.data(), blocks);
                for (const Block& block : blocks) {
                  if (counts) measure_loss(batch, block, mean, false, thread, totals_[part]);
                  // From the block's layout, in which a lane is an image, to a row of `outputs` per image.
                  const float* logits = program_.outputs(*block.workspace);
                  for (std::size_t i = 0; !outputs.empty() && i < block.images; ++i) {
                    for (std::size_t c = 0; c < outputs_; ++c)
                      outputs[(block.first_image + i) * outputs_ + c] = logits[c * kLanes + i];
                  }
                }
              });
            });
  gather_evaluation(batch, outputs);
  if (counts) add_totals(partials, batch);
}

// Keeps the running statistics, and overwrites sums that the last step has used, so that profiling does not
// change the training.
std::vector<LayerProfile> CpuEngine::profile(const Batch& batch) {
  check(batch);
  const std::size_t blocks = block_count(batch.size());
  while (multi_phase() && memory_.workspaces.size() < blocks)
    memory_.workspaces.push_back(program_.make_workspace());
  std::vector<double> seconds(program_.op_count());
  const auto train_alone = [&](const Batch& samples, double* op_seconds) {
    TrainingPass pass{samples, mean_scale(samples, options_.loss, true), 1, {0, 1}, {0, 1}};
    pass.keep_running = true;
    pass.op_seconds = op_seconds;
    run_phases(pass, [&](std::size_t phase, PipelinePasses passes) {
      pool_.run(1, [&](std::size_t part, std::size_t thread) noexcept {
        train_part(pass, phase, passes, part, thread);
      });
    });
  };
  // An untimed pass over the first block warms up the caches.
  const Batch first{batch.samples, batch.targets, batch.indices.first(std::min(kLanes, batch.size()))};
  if (first.size() > 0) train_alone(first, nullptr);
  if (batch.size() > 0) train_alone(batch, seconds.data());

  std::vector<LayerProfile> layers;
  for (const Layer& layer : network_.layers()) layers.push_back({.layer = layer.name});
  for (std::size_t op = 0; op < program_.op_count(); ++op) {
    const OpSizes& sizes = program_.op(op).op->sizes();
    LayerProfile& layer = layers[program_.op(op).first_layer];
    layer.seconds = seconds[op];
    layer.bytes = (blocks * (sizes.out_floats + sizes.saved_floats) + sizes.parameter_floats) * sizeof(float);
  }
  return layers;
}

void CpuEngine::add_totals(std::size_t partials, const Batch& batch) {
  for (std::size_t part = 0; part < std::min(partials, block_count(batch.size())); ++part)
    sums_ += totals_[part];
  const auto samples = static_cast<std::int64_t>(batch.size());
  sums_.samples += samples;
  if (is_regression(batch.targets)) {
    sums_.numbers += samples * static_cast<std::int64_t>(outputs_);
  } else if (counts_top(outputs_)) {
    sums_.ranked += samples;
  }
}

// What the devices that share a batch let each other have; nothing if there is one.

void CpuEngine::gather(std::span<const SharedArray> arrays) {
  const auto begin = std::chrono::steady_clock::now();
  group_->all_gather(arrays);
  communication_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Lets every device have the sums of all blocks.
void CpuEngine::gather_sums(const BlockSums& sums, const TrainingPass& pass) {
  if (group_ == nullptr || !pass.turn) return;
  map_begins(shares_.of(*pass.turn), begins_, [&](std::size_t partial) {
    return pass.blocks_of({pass.all.begin, partial}).size() * sums.bytes;
  });
  const SharedArray array{sums.data, begins_};
  gather({&array, 1});
}

// The totals of partial sums, an array for each turn.
void CpuEngine::share_totals(const RankShares& shares) {
  map_begins(shares.begins, totals_begins_, [](std::size_t part) { return part * sizeof(PartialTotals); });
  const std::size_t begins = place_.count + 1;
  for (std::size_t turn = 0; turn < shares.turns(); ++turn)
    gathered_.push_back(
        {bytes_of(std::span(totals_)).data(), std::span(totals_begins_).subspan(turn * begins, begins)});
}

void CpuEngine::gather_gradient() {
  if (group_ == nullptr) return;
  // As many ranges as the threads, but not so small that their caches' lines were shared.
  const std::size_t lines = program_.parameter_floats() / kLanes, parts = std::min(lines, 8 * pool_.size());
  pool_.run(parts, [&](std::size_t part, std::size_t) noexcept {
    const std::size_t begin = part_begin(lines, parts, part) * kLanes;
    memory_.partials.add_up_share(begin, part_begin(lines, parts, part + 1) * kLanes - begin);
  });
  gathered_.clear();
  gathered_.push_back(memory_.partials.share());
  share_totals(shares_);
  gather(gathered_);
}

// Lets every device have the totals, and the outputs if there is room for them.
void CpuEngine::gather_evaluation(const Batch& batch, std::span<float> outputs) {
  if (group_ == nullptr) return;
  gathered_.clear();
  share_totals(evaluation_shares_);
  if (!outputs.empty()) {
    map_begins(sample_shares(batch.size(), false).begins, begins_,
               [&](std::size_t sample) { return sample * outputs_ * sizeof(float); });
    gathered_.push_back({bytes_of(outputs).data(), begins_});
  }
  gather(gathered_);
}

const RankShares& CpuEngine::sample_shares(std::size_t samples, bool training) {
  const std::size_t blocks = block_count(samples), partials = partial_count(network_, program_, blocks);
  RankShares& shares = training ? shares_ : evaluation_shares_;
  share_out(partials, training ? turns_of(options_, program_) : 1, place_.count, shares);
  sample_shares_.ranks = place_.count;
  map_begins(shares.begins, sample_shares_.begins, [&](std::size_t part) {
    return std::min(part_begin(blocks, partials, part) * kLanes, samples);
  });
  return sample_shares_;
}

}  // namespace sweep::cpu
