// How a Program's steps are put on a stream: as graphs of whole steps, or of what is done between exchanges.
#include <set>
#include <span>

#include "core/kernels/cuda/kernels/pixels.h"
#include "core/kernels/cuda/program.h"

namespace sweep::cuda {
namespace {

bool is_training(Task task) { return task != Task::kEvaluate && task != Task::kPredict; }

// The samples of the passes over a batch of `images`.
std::set<int> pass_sizes(Task task, int images, const GradientParts& parts) {
  if (!is_training(task)) return {images};
  std::set<int> sizes;
  for (int turn = 0; turn < parts.turns; ++turn) {
    const PartSizes of_turn = part_sizes(static_cast<std::size_t>(images), parts, turn);
    for (int part = 0; part < of_turn.count; ++part) sizes.insert(of_turn.of(part));
  }
  sizes.erase(0);
  return sizes;
}

}  // namespace

void Program::run(Stream& stream, Task task, int steps, int images, const StepInputs& inputs) {
  for (const Recorded& recorded : recording(stream, task, steps, images, inputs))
    stream.launch(*recorded.graph);
}

void Program::train_parts(Stream& stream, int images, const StepInputs& inputs, PartExchange& exchange) {
  int round = 0;
  for (const Recorded& recorded : recording(stream, Task::kTrainParts, 1, images, inputs)) {
    if (recorded.graph) stream.launch(*recorded.graph);
    if (recorded.exchanged == Exchanged::kSums) exchange.all(sums_.data(), recorded.sum_bytes);
    if (recorded.exchanged == Exchanged::kGradient)
      exchange.begin(part_gradients(), gradient_bytes(), round++);
  }
  if (goes_by_part()) {
    for (; round < options_.parts.most; ++round) exchange.begin(part_gradients(), gradient_bytes(), round);
    exchange.finish();
  } else {
    exchange.all(part_gradients(), gradient_bytes());
  }
  take_step(stream, images, reinterpret_cast<const StepInput*>(inputs.first));
}

bool Program::goes_by_part() const { return options_.exchanges_by_part && sums_.size() == 0; }

// The segments of a step that trains.
std::vector<Program::Segment> Program::segments(int images) const {
  std::vector<Segment> all;
  const int first = options_.parts.first, end = options_.parts.end;
  for (int turn = 0; turn < options_.parts.turns; ++turn) {
    if (samples_of_turn(static_cast<std::size_t>(images), options_.parts, turn).size() == 0) continue;
    Segment segment{.turn = turn, .first_part = first, .end_part = end};
    for (std::size_t i = 0; i < moments_.size() && sums_.size() > 0; ++i) {
      if (moments_[i].sum_bytes() == 0) continue;
      segment.end = i;
      segment.exchanged = Exchanged::kSums;
      all.push_back(segment);
      segment = {.turn = turn, .begin = i, .first_part = first, .end_part = end, .joins = true};
    }
    segment.end = moments_.size();
    all.push_back(segment);
  }
  if (!goes_by_part()) return all;
  // The last turn completes the gradients.
  const Segment last = all.back();
  all.pop_back();
  for (int part = first; part < end; ++part) {
    all.push_back(last);
    all.back().first_part = part;
    all.back().end_part = part + 1;
    all.back().exchanged = Exchanged::kGradient;
  }
  return all;
}

// A graph for all segments up to one with an exchange behind it.
std::vector<Program::Recorded> Program::record_parts(Stream& stream, int images, const Inputs& inputs) const {
  std::vector<Recorded> recorded;
  std::vector<Segment> together;
  const std::vector<Segment> all = segments(images);
  for (const Segment& segment : all) {
    if (!is_without_work(segment, images)) together.push_back(segment);
    if (segment.exchanged == Exchanged::kNothing && &segment != &all.back()) continue;
    Recorded next{.exchanged = segment.exchanged};
    if (segment.exchanged == Exchanged::kSums) next.sum_bytes = moments_[segment.end].sum_bytes();
    if (!together.empty()) {
      next.graph = stream.capture([&] {
        for (const Segment& piece : together) train(stream, Task::kTrainParts, piece, images, inputs);
      });
    }
    together.clear();
    recorded.push_back(std::move(next));
  }
  return recorded;
}

const std::vector<Program::Recorded>& Program::recording(Stream& stream, Task task, int steps, int images,
                                                         const StepInputs& inputs) {
  const Key key{task, steps, images};
  const auto found = recordings_.find(key);
  if (found != recordings_.end()) return found->second;
  // Before the capture: libraries choose algorithms here, which a capture forbids.
  for (const int size : pass_sizes(task, images, options_.parts)) {
    for (const auto& op : network_.ops) op->prepare(size);
  }
  const auto inputs_of = [&](int step) {
    std::byte* input = inputs.first + static_cast<std::size_t>(step) * inputs.stride;
    return Inputs{reinterpret_cast<const StepInput*>(input),
                  reinterpret_cast<const std::uint32_t*>(input + inputs.rows_offset),
                  reinterpret_cast<const std::uint32_t*>(input + inputs.numbers_offset)};
  };
  std::vector<Recorded> recorded;
  if (task == Task::kTrainParts) {
    recorded = record_parts(stream, images, inputs_of(0));
  } else {
    recorded.push_back({stream.capture([&] {
      for (int step = 0; step < steps; ++step) {
        if (!is_training(task)) {
          evaluate(stream, task, images, inputs_of(step));
          continue;
        }
        for (const Segment& segment : segments(images)) train(stream, task, segment, images, inputs_of(step));
        take_step(stream, images, inputs_of(step).input);
      }
    })});
  }
  return recordings_.emplace(key, std::move(recorded)).first->second;
}

DeviceTotals* Program::totals_of_part(int part) const {
  const auto parts = static_cast<std::size_t>(options_.parts.count);
  return totals_.data() + totals_.size() / parts * static_cast<std::size_t>(part);
}

Pass Program::make_pass(Stream& stream, int images, const Inputs& inputs) const {
  return {
      .stream = stream,
      .images = images,
      .input = inputs.input,
      .rows = inputs.rows,
      .parameters = parameters_.data(),
      .buffers = buffers_.data(),
      .first_parameter = static_cast<int>(parameter_share_.base),
      .first_buffer = static_cast<int>(buffer_share_.base),
      .normalisation = {mean_.size() > 0 ? mean_.data() : nullptr, std_.size() > 0 ? std_.data() : nullptr},
      .plan = network_.plan,
      .memory = memory_.data()};
}

void Program::evaluate(Stream& stream, Task task, int images, const Inputs& inputs) const {
  const Pass pass = make_pass(stream, images, inputs);
  DeviceTotals* totals = totals_of_part(options_.parts.first);
  load(pass);
  run_moments(pass, 0, network_.ops.size(), totals);
  run_loss(pass, task == Task::kEvaluate, totals);
}

// Changes the samples of a turn, if the task does; else they are as they come.
Program::Inputs Program::augmented(Stream& stream, Task task, int images, const Inputs& inputs) const {
  if (task != Task::kAugmentAndTrain) return inputs;
  const AugmentedBatch batch = augmented_batch();
  augment_samples(stream, inputs.input, inputs.rows, inputs.numbers, images, augment_, batch);
  return {batch.input, batch.rows, nullptr};
}

// Whether a turn adds nothing to the gradients of the parts, and no sums are exchanged: a graph is not empty.
bool Program::is_without_work(const Segment& segment, int images) const {
  const auto samples = static_cast<std::size_t>(images);
  const auto samples_of = [&](int first, int end) {
    return samples_of_parts(samples, options_.parts, segment.turn, first, end);
  };
  return sums_.size() == 0 && samples_of(0, 0).begin > 0 &&
         samples_of(segment.first_part, segment.end_part).size() == 0;
}

// A segment's parts, one after another.
void Program::train(Stream& stream, Task task, const Segment& segment, int images,
                    const Inputs& inputs) const {
  const GradientParts& parts = options_.parts;
  const auto samples = static_cast<std::size_t>(images);
  const auto samples_of = [&](int first, int end) {
    return samples_of_parts(samples, parts, segment.turn, first, end);
  };
  const SampleRange own = samples_of(parts.first, parts.end);
  const std::size_t before = own_samples_before(samples, parts, segment.turn);
  const Inputs of_turn = augmented(stream, task, static_cast<int>(own.size()),
                                   {inputs.input, inputs.rows + before, inputs.numbers + before});
  const bool is_last = segment.end == moments_.size(), is_first_turn = samples_of(0, 0).begin == 0;
  const JointPass joint = joint_pass(part_sizes(samples, parts, segment.turn));
  const auto pass_over = [&](int part, const SampleRange& range) {
    return training_pass(stream, {of_turn.input, of_turn.rows + (range.begin - own.begin), nullptr}, part,
                         range, joint);
  };
  if (segment.joins) {
    const Moment& moment = moments_[segment.begin];
    moment.op->join_sums(pass_over(parts.first, {own.begin, own.begin}), moment.phase());
  }
  for (int part = segment.first_part; part < segment.end_part; ++part) {
    const SampleRange range = samples_of(part, part + 1);
    const Pass pass = pass_over(part, range);
    if (range.size() > 0) {
      if (!segment.joins) load(pass);
      run_moments(pass, segment.begin, segment.end, totals_of_part(part));
    }
    if (!is_last) leave_sums(*moments_[segment.end].op, moments_[segment.end].phase(), pass);
    if (is_last) sum_gradient(stream, part, range.size() > 0, !is_first_turn);
  }
}

Pass Program::training_pass(Stream& stream, const Inputs& inputs, int part, const SampleRange& samples,
                            const JointPass& joint) const {
  Pass pass = make_pass(stream, static_cast<int>(samples.size()), inputs);
  pass.training = true;
  pass.first_image = static_cast<int>(samples.begin);
  pass.memory = memory_.data() + block_of_part(part) * network_.memory_bytes;
  pass.joint = options_.parts.count > 1 ? &joint : nullptr;
  pass.part = part;
  return pass;
}

void Program::leave_sums(const Op& op, Phase phase, const Pass& pass) const {
  const std::size_t bytes = op.sum_bytes(phase);
  if (pass.images > 0) {
    op.leave_sums(pass, phase);
  } else {
    // Nobody reads them, but they are exchanged; and no graph is empty.
    pass.stream.clear(sums_.data() + static_cast<std::size_t>(pass.part) * bytes, bytes);
  }
}

void Program::sum_gradient(Stream& stream, int part, bool has_samples, bool add) const {
  if (options_.parts.is_whole()) return;
  float* gradient = part_gradients_.data() + static_cast<std::size_t>(part) * parameters_.size();
  if (has_samples) {
    block_sums_[block_of_part(part)].run(stream, add, gradient);
  } else if (!add) {
    stream.clear(gradient, parameters_.size() * sizeof(float));
  }
}

// Whether the optimizer's kernel computes the weight gradients of the head.
bool Program::step_takes_head(int images) const {
  return network_.head && options_.parts.is_whole() &&
         optimizer_.takes_stack(images, network_.head->gradient_parts());
}

void Program::take_step(Stream& stream, int images, const StepInput* input) const {
  if (step_takes_head(images)) {
    const Pass pass = make_pass(stream, images, {});
    optimizer_.step_with_stack(stream, input, network_.head->weight_gradients(pass), images,
                               network_.head->gradient_parts());
  } else if (network_.head || network_.output_gradient) {
    optimizer_.step(stream, input);
  }
}

void Program::load(const Pass& pass) const {
  if (network_.reads_input)
    load_samples(pass.stream, pass.input, pass.rows, pass.images, channels_, plane_, pass.normalisation,
                 pass.data(network_.input));
}

void Program::run_moments(const Pass& pass, std::size_t begin, std::size_t end, DeviceTotals* totals) const {
  for (const Moment& moment : std::span(moments_).subspan(begin, end - begin)) {
    switch (moment.kind) {
      case Moment::Kind::kForward:
        moment.op->forward(pass);
        break;
      case Moment::Kind::kLoss:
        run_loss(pass, true, totals);
        if (network_.head && !step_takes_head(pass.images)) network_.head->backward_weights(pass);
        break;
      case Moment::Kind::kBackward:
        moment.op->backward(pass);
        break;
    }
  }
}

void Program::run_loss(const Pass& pass, bool compares, DeviceTotals* totals) const {
  if (network_.head) {
    network_.head->run(pass, compares ? &loss_ : nullptr, totals);
  } else if (compares) {
    float* gradient = pass.training ? pass.data(network_.output_gradient) : nullptr;
    loss(pass.stream, loss_, pass.input, pass.rows, pass.images, outputs_, pass.data(network_.output), totals,
         gradient);
  }
}

}  // namespace sweep::cuda
