// How a Program's steps are put on a stream: as graphs.
#include <set>
#include <span>

#include "core/kernels/cuda/kernels/pixels.h"
#include "core/kernels/cuda/program.h"

namespace sweep::cuda {
namespace {

bool is_training(Task task) { return task != Task::kEvaluate && task != Task::kPredict; }

// The samples of the passes over a batch of `images`.
std::set<int> pass_sizes(Task task, int images, const BatchShares& shares) {
  if (!is_training(task)) return {images};
  std::set<int> sizes;
  for (int turn = 0; turn < shares.turns; ++turn) {
    const ShareSizes of_turn = share_sizes(static_cast<std::size_t>(images), shares, turn);
    for (int share = 0; share < of_turn.count; ++share) sizes.insert(of_turn.of(share));
  }
  sizes.erase(0);
  return sizes;
}

}  // namespace

void Program::run(Stream& stream, Task task, int steps, int images, const StepInputs& inputs) {
  stream.launch(record(stream, task, steps, images, inputs));
}

const Graph& Program::record(Stream& stream, Task task, int steps, int images, const StepInputs& inputs) {
  const Key key{task, steps, images};
  const auto found = recordings_.find(key);
  if (found != recordings_.end()) return found->second;
  for (const int size : pass_sizes(task, images, options_.shares)) {
    const Pass pass = make_pass(stream, size, {});
    for (const auto& op : network_.ops) op->prepare(pass);
  }
  Graph graph = stream.capture([&] {
    for (int step = 0; step < steps; ++step) {
      std::byte* input = inputs.first + static_cast<std::size_t>(step) * inputs.stride;
      const Inputs of_step{reinterpret_cast<const StepInput*>(input),
                           reinterpret_cast<const std::uint32_t*>(input + inputs.rows_offset),
                           reinterpret_cast<const std::uint32_t*>(input + inputs.numbers_offset)};
      if (is_training(task)) {
        train(stream, task, images, of_step);
      } else {
        evaluate(stream, task, images, of_step);
      }
    }
  });
  return recordings_.emplace(key, std::move(graph)).first->second;
}

Totals* Program::totals_of_share(int share) const {
  const auto shares = static_cast<std::size_t>(options_.shares.count);
  return totals_.data() + totals_.size() / shares * static_cast<std::size_t>(share);
}

Pass Program::make_pass(Stream& stream, int images, const Inputs& inputs) const {
  return {
      .stream = stream,
      .images = images,
      .input = inputs.input,
      .rows = inputs.rows,
      .parameters = parameters_.data(),
      .buffers = buffers_.data(),
      .first_parameter = static_cast<int>(parameter_range_.base),
      .first_buffer = static_cast<int>(buffer_range_.base),
      .normalisation = {mean_.size() > 0 ? mean_.data() : nullptr, std_.size() > 0 ? std_.data() : nullptr},
      .plan = network_.plan,
      .memory = memory_.data()};
}

void Program::evaluate(Stream& stream, Task task, int images, const Inputs& inputs) const {
  const Pass pass = make_pass(stream, images, inputs);
  load(pass);
  for (const auto& op : network_.ops) op->forward(pass);
  run_loss(pass, task == Task::kEvaluate, totals_of_share(options_.shares.first));
}

// Changes the samples of a turn, if the task does; else they are as they come.
Program::Inputs Program::augmented(Stream& stream, Task task, int images, const Inputs& inputs) const {
  if (task != Task::kAugmentAndTrain) return inputs;
  const AugmentedBatch batch = augmented_batch();
  augment_samples(stream, inputs.input, inputs.rows, inputs.numbers, images, augment_, batch);
  return {batch.input, batch.rows, nullptr};
}

// One turn after another; a batch may have fewer samples than there are turns.
void Program::train(Stream& stream, Task task, int images, const Inputs& inputs) const {
  const auto samples = static_cast<std::size_t>(images);
  for (int turn = 0; turn < options_.shares.turns; ++turn) {
    const SampleRange range = samples_of_turn(samples, options_.shares, turn);
    if (range.size() == 0) continue;
    const Inputs of_turn = augmented(stream, task, static_cast<int>(range.size()),
                                     {inputs.input, inputs.rows + range.begin, inputs.numbers + range.begin});
    train_turn(training_pass(stream, of_turn, 0, range, {}));
    sum_gradient(stream, 0, true, range.begin > 0);
  }
  take_step(stream, images, inputs.input);
}

void Program::train_turn(const Pass& pass) const {
  load(pass);
  for (const auto& op : network_.ops) op->forward(pass);
  run_loss(pass, true, totals_of_share(0));
  if (network_.stack && !step_takes_stack(pass.images)) network_.stack->backward_weights(pass);
  for (const std::size_t op : network_.backward) network_.ops[op]->backward(pass);
}

Pass Program::training_pass(Stream& stream, const Inputs& inputs, int share, const SampleRange& samples,
                            const JointPass& joint) const {
  Pass pass = make_pass(stream, static_cast<int>(samples.size()), inputs);
  pass.training = true;
  pass.first_image = static_cast<int>(samples.begin);
  pass.memory = memory_.data() + block_of_share(share) * network_.memory_bytes;
  pass.joint = options_.shares.count > 1 ? &joint : nullptr;
  pass.share = share;
  return pass;
}

void Program::leave_sums(const Op& op, Phase phase, const Pass& pass) const {
  const std::size_t bytes = op.sum_bytes(phase);
  if (pass.images > 0) {
    op.leave_sums(pass, phase);
  } else {
    // Nobody reads them, but they are exchanged; and no graph is empty.
    pass.stream.clear(sums_.data() + static_cast<std::size_t>(pass.share) * bytes, bytes);
  }
}

void Program::sum_gradient(Stream& stream, int share, bool has_samples, bool add) const {
  if (options_.shares.is_whole()) return;
  float* gradient = share_gradients_.data() + static_cast<std::size_t>(share) * parameters_.size();
  if (has_samples) {
    block_sums_[block_of_share(share)].add_up(stream, add, gradient);
  } else if (!add) {
    stream.clear(gradient, parameters_.size() * sizeof(float));
  }
}

// Whether the optimizer's kernel computes the weight gradients of the stack.
bool Program::step_takes_stack(int images) const {
  return network_.stack && options_.shares.is_whole() &&
         optimizer_.takes_stack(images, network_.stack->gradient_slices());
}

void Program::take_step(Stream& stream, int images, const StepInput* input) const {
  if (step_takes_stack(images)) {
    const Pass pass = make_pass(stream, images, {});
    optimizer_.step_with_stack(stream, input, network_.stack->weight_gradients(pass), images,
                               network_.stack->gradient_slices());
  } else if (network_.stack || network_.output_gradient) {
    optimizer_.step(stream, input);
  }
}

void Program::load(const Pass& pass) const {
  if (network_.reads_input)
    load_samples(pass.stream, pass.input, pass.rows, pass.images, channels_, plane_, pass.normalisation,
                 pass.data(network_.input));
}

void Program::run_loss(const Pass& pass, bool compares, Totals* totals) const {
  if (network_.stack) {
    network_.stack->run(pass, compares ? &loss_ : nullptr, totals);
  } else if (compares) {
    float* gradient = pass.training ? pass.data(network_.output_gradient) : nullptr;
    loss(pass.stream, loss_, pass.input, pass.rows, pass.images, outputs_, pass.data(network_.output), totals,
         gradient);
  }
}

}  // namespace sweep::cuda
