#include "core/kernels/cuda/program.h"

#include <algorithm>
#include <set>
#include <span>

#include "core/base/error.h"
#include "core/kernels/cuda/kernels/pixels.h"
#include "core/kernels/cuda/kernels/sum_order.h"

namespace sweep::cuda {
namespace {

Array<float> zeros(Stream& stream, std::size_t count, const std::string& purpose) {
  Array<float> array(count, purpose);
  stream.clear(array.data(), count * sizeof(float));
  return array;
}

std::vector<Array<float>> make_state(Stream& stream, const OptimizerOptions& options, std::size_t floats) {
  std::vector<Array<float>> state;
  for (const std::string& name : state_names(options))
    state.push_back(zeros(stream, floats, "the optimizer's " + name));
  return state;
}

CompiledNetwork compiled(const Network& network, const ProgramOptions& options) {
  KernelAutotuner autotuner(
      {.device = options.device, .recorded = options.kernels, .deterministic = options.deterministic});
  return compile(network, options.batch_size, options.seed, options.parts.count > 1, autotuner);
}

int plane_of(const Shape& input) {
  return static_cast<int>(element_count(input)) / static_cast<int>(input[0]);
}

// Empty where samples are no images, which no loader augments.
AugmentPlan augment_plan(const Network& network, const ProgramOptions& options) {
  const Shape& shape = network.input();
  if (options.augment.steps.empty() || shape.size() != 3) return {};
  if (options.augment.steps.size() > kMostAugmentSteps)
    throw ConfigError("augment: at most " + std::to_string(kMostAugmentSteps) + " changes are possible");
  return {.steps = nullptr,
          .count = static_cast<int>(options.augment.steps.size()),
          .seed = options.augment.seed,
          .repeat = options.augment.repeat,
          .channels = static_cast<int>(shape[0]),
          .height = static_cast<int>(shape[1]),
          .width = static_cast<int>(shape[2]),
          .targets = static_cast<int>(element_count(network.output()))};
}

bool is_training(Task task) { return task != Task::kEvaluate && task != Task::kPredict; }

// The samples of the passes over a batch of `images`.
std::set<int> pass_sizes(Task task, int images, const BatchParts& parts) {
  if (!is_training(task)) return {images};
  std::set<int> sizes;
  for (int turn = 0; turn < parts.turns; ++turn) {
    const PartSizes of_turn = part_sizes(static_cast<std::size_t>(images), parts, turn);
    sizes.insert(of_turn.images, of_turn.images + of_turn.count);
  }
  sizes.erase(0);
  return sizes;
}

// Where the arrays of an AugmentedBatch begin, after its input. Offsets in bytes.
struct AugmentLayout {
  std::size_t rows, targets, samples;
};
AugmentLayout augment_layout(int images, int targets) {
  constexpr std::size_t kAlignment = 256;
  const auto aligned = [](std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; };
  const auto count = static_cast<std::size_t>(images);
  const std::size_t rows = aligned(sizeof(StepInput));
  const std::size_t first_target = rows + aligned(count * sizeof(std::uint32_t));
  const std::size_t values = count * static_cast<std::size_t>(targets);
  return {rows, first_target, first_target + aligned(values * sizeof(float))};
}

}  // namespace

Program::Program(Stream& stream, const Network& network, const ProgramOptions& options)
    : options_(options),
      channels_(static_cast<int>(network.input()[0])),
      plane_(plane_of(network.input())),
      outputs_(static_cast<int>(network.output()[0])),
      network_(compiled(network, options)),
      moments_(moments()),
      sums_(largest_sums() * static_cast<std::size_t>(options.parts.count), "the sums of a batch's parts"),
      memory_(blocks() * network_.memory_bytes,
              "the activations and gradients of a batch of " +
                  std::to_string(blocks() * static_cast<std::size_t>(options.batch_size))),
      parameters_(zeros(stream, network.parameter_count(), "the parameters")),
      gradient_(zeros(stream, network.parameter_count(), "the gradient")),
      buffers_(to_device(stream, initial_buffers(network), "the running statistics")),
      mean_(to_device(stream, options.transform.mean, "the pixels' mean")),
      std_(to_device(stream, options.transform.std, "the pixels' deviation")),
      part_gradients_(options.parts.is_whole()
                          ? Array<float>()
                          : zeros(stream,
                                  static_cast<std::size_t>(options.parts.count) * network.parameter_count(),
                                  "the gradients of a batch's parts")),
      class_weights_(to_device(stream, options.loss.class_weights, "the weights of the classes")),
      loss_{.kind = options.loss.kind,
            .smoothing = static_cast<float>(options.loss.label_smoothing),
            .beta = static_cast<float>(options.loss.beta),
            .class_weights = class_weights_.size() > 0 ? class_weights_.data() : nullptr},
      augment_(augment_plan(network, options)),
      augment_steps_(to_device(stream, options.augment.steps, "the list of augmentations")),
      state_(make_state(stream, options.optimizer, network.parameter_count())),
      totals_(
          static_cast<std::size_t>(options.parts.count *
                                   (network_.head ? kStackBlocks : loss_totals_count(options.batch_size))),
          "the sums of an epoch"),
      optimizer_(make_optimizer(stream)) {
  augment_.steps = augment_steps_.data();
  if (!options.parts.is_whole()) {
    for (std::size_t block = 0; block < blocks(); ++block)
      block_sums_.emplace_back(stream, gradient_sources(memory_.data() + block * network_.memory_bytes));
  }
  stream.clear(totals_.data(), totals_.size() * sizeof(DeviceTotals));
}

void Program::allocate_augmented(Stream& stream, std::size_t value_bytes) {
  const AugmentLayout layout = augment_layout(options_.batch_size, augment_.targets);
  const std::size_t values = static_cast<std::size_t>(channels_) * static_cast<std::size_t>(plane_);
  const std::size_t bytes =
      layout.samples + static_cast<std::size_t>(options_.batch_size) * values * value_bytes;
  if (augmented_.size() >= bytes) return;
  stream.wait();
  std::erase_if(recordings_, [](const auto& entry) { return entry.first.task == Task::kAugmentAndTrain; });
  augmented_ = Array<std::byte>(bytes, "the images of a batch as they are changed");
}

AugmentedBatch Program::augmented_batch() const {
  const AugmentLayout layout = augment_layout(options_.batch_size, augment_.targets);
  std::byte* first = augmented_.data();
  return {.samples = first + layout.samples,
          .targets = first + layout.targets,
          .input = reinterpret_cast<StepInput*>(first),
          .rows = reinterpret_cast<std::uint32_t*>(first + layout.rows)};
}

std::vector<Program::Moment> Program::moments() const {
  std::vector<Moment> all;
  for (const auto& op : network_.ops) all.push_back({Moment::Kind::kForward, op.get()});
  all.push_back({Moment::Kind::kLoss});
  for (const Op* op : network_.backward) all.push_back({Moment::Kind::kBackward, op});
  return all;
}

// Bytes of the largest sums that parts leave for each other.
std::size_t Program::largest_sums() const {
  std::size_t largest = 0;
  if (options_.parts.count == 1) return largest;
  for (const Moment& moment : moments_) largest = std::max(largest, moment.sum_bytes());
  return largest;
}

// Parts whose activations are there at the same time: all of this device if they wait for each other's sums.
std::size_t Program::blocks() const {
  const int own = options_.parts.end - options_.parts.first;
  return sums_.size() == 0 ? 1 : static_cast<std::size_t>(std::max(1, own));
}

std::size_t Program::block_of_part(int part) const {
  return blocks() == 1 ? 0 : static_cast<std::size_t>(part - options_.parts.first);
}

std::vector<GradientSource> Program::gradient_sources(const std::byte* block) const {
  std::vector<GradientSource> sources;
  const auto add = [&](const std::vector<PartialGradient>& parts) {
    for (const PartialGradient& part : parts) {
      const auto* begin = reinterpret_cast<const float*>(block + network_.plan.offset(part.slot));
      sources.push_back({begin, part.offset, part.count, part.parts});
    }
  };
  for (const auto& op : network_.ops) add(op->gradients());
  if (network_.head) add(network_.head->gradients());
  return sources;
}

Optimizer Program::make_optimizer(Stream& stream) const {
  OptimizerArrays arrays{parameters_.data(), gradient_.data(), {}};
  for (std::size_t i = 0; i < state_.size(); ++i) arrays.state[i] = state_[i].data();
  if (options_.parts.is_whole())
    return Optimizer(stream, options_.optimizer, options_.clip_norm, gradient_sources(memory_.data()),
                     arrays);
  const auto count = static_cast<int>(parameters_.size());
  return Optimizer(stream, options_.optimizer, options_.clip_norm,
                   {{part_gradients_.data(), 0, count, options_.parts.count}}, arrays);
}

const float* Program::outputs() const {
  return reinterpret_cast<const float*>(memory_.data() + network_.plan.offset(network_.output));
}

void Program::run(Stream& stream, Task task, int steps, int images, const StepInputs& inputs) {
  for (const Recorded& recorded : recording(stream, task, steps, images, inputs))
    stream.launch(recorded.graph);
}

void Program::train_parts(Stream& stream, int images, const StepInputs& inputs,
                          const ExchangeParts& exchange) {
  for (const Recorded& recorded : recording(stream, Task::kTrainParts, 1, images, inputs)) {
    stream.launch(recorded.graph);
    if (recorded.sum_bytes > 0) exchange(sums_.data(), recorded.sum_bytes);
  }
  exchange(reinterpret_cast<std::byte*>(part_gradients_.data()), parameters_.size() * sizeof(float));
  take_step(stream, reinterpret_cast<const StepInput*>(inputs.first));
}

// The segments of a step that trains.
std::vector<Program::Segment> Program::segments(int images) const {
  std::vector<Segment> all;
  for (int turn = 0; turn < options_.parts.turns; ++turn) {
    if (samples_of_turn(static_cast<std::size_t>(images), options_.parts, turn).size() == 0) continue;
    Segment segment{.turn = turn};
    for (std::size_t i = 0; i < moments_.size() && sums_.size() > 0; ++i) {
      if (moments_[i].sum_bytes() == 0) continue;
      segment.end = i;
      all.push_back(segment);
      segment = {.turn = turn, .begin = i, .joins = true};
    }
    segment.end = moments_.size();
    all.push_back(segment);
  }
  return all;
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
    const std::vector<Segment> all = segments(images);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t first = i;
      // An exchange comes behind all but a turn's last segment.
      while (all[i].end == moments_.size() && i + 1 < all.size()) ++i;
      Graph graph = stream.capture([&] {
        for (std::size_t part = first; part <= i; ++part)
          train(stream, task, all[part], images, inputs_of(0));
      });
      const bool is_end = all[i].end == moments_.size();
      recorded.push_back({std::move(graph), is_end ? 0 : moments_[all[i].end].sum_bytes()});
    }
  } else {
    recorded.push_back({stream.capture([&] {
      for (int step = 0; step < steps; ++step) {
        if (!is_training(task)) {
          evaluate(stream, task, images, inputs_of(step));
          continue;
        }
        for (const Segment& segment : segments(images)) train(stream, task, segment, images, inputs_of(step));
        take_step(stream, inputs_of(step).input);
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

// A segment of all parts that are this device's, one after another.
void Program::train(Stream& stream, Task task, const Segment& segment, int images,
                    const Inputs& inputs) const {
  const BatchParts& parts = options_.parts;
  const auto samples = static_cast<std::size_t>(images);
  const auto samples_of = [&](int first, int end) {
    return samples_of_parts(samples, parts, segment.turn, first, end);
  };
  const SampleRange own = samples_of(parts.first, parts.end);
  const std::size_t before = own_samples_before(samples, parts, segment.turn);
  const Inputs of_turn = augmented(stream, task, static_cast<int>(own.size()),
                                   {inputs.input, inputs.rows + before, inputs.numbers + before});
  const bool is_last = segment.end == moments_.size(), is_first_turn = samples_of(0, 0).begin == 0;
  const JointPass joint{sums_.data(), memory_.data(), part_sizes(samples, parts, segment.turn)};
  const auto pass_over = [&](int part, const SampleRange& range) {
    Pass pass = make_pass(stream, static_cast<int>(range.size()),
                          {of_turn.input, of_turn.rows + (range.begin - own.begin), nullptr});
    pass.training = true;
    pass.first_image = static_cast<int>(range.begin);
    pass.memory = memory_.data() + block_of_part(part) * network_.memory_bytes;
    pass.joint = sums_.size() > 0 ? &joint : nullptr;
    pass.part = part;
    return pass;
  };
  if (segment.joins) {
    const Moment& moment = moments_[segment.begin];
    moment.op->join_sums(pass_over(parts.first, {own.begin, own.begin}), moment.phase());
  }
  for (int part = parts.first; part < parts.end; ++part) {
    const SampleRange range = samples_of(part, part + 1);
    if (range.size() > 0) {
      const Pass pass = pass_over(part, range);
      if (!segment.joins) load(pass);
      run_moments(pass, segment.begin, segment.end, totals_of_part(part));
      if (!is_last) moments_[segment.end].op->leave_sums(pass, moments_[segment.end].phase());
    }
    if (is_last && !parts.is_whole()) sum_gradient(stream, part, range.size() > 0, !is_first_turn);
  }
}

// Of a part, in its own place, to which turns add.
void Program::sum_gradient(Stream& stream, int part, bool has_samples, bool add) const {
  float* gradient = part_gradients_.data() + static_cast<std::size_t>(part) * parameters_.size();
  if (has_samples) {
    block_sums_[block_of_part(part)].run(stream, add, gradient);
  } else if (!add) {
    stream.clear(gradient, parameters_.size() * sizeof(float));
  }
}

void Program::take_step(Stream& stream, const StepInput* input) const {
  if (network_.head || network_.output_gradient) optimizer_.step(stream, input);
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
        break;
      case Moment::Kind::kBackward:
        moment.op->backward(pass);
        break;
    }
  }
}

// And the head, which is fused with it. `compares`: with the targets.
void Program::run_loss(const Pass& pass, bool compares, DeviceTotals* totals) const {
  if (network_.head) {
    network_.head->run(pass, compares ? &loss_ : nullptr, totals);
    if (pass.training) network_.head->backward_weights(pass);
  } else if (compares) {
    float* gradient = pass.training ? pass.data(network_.output_gradient) : nullptr;
    loss(pass.stream, loss_, pass.input, pass.rows, pass.images, outputs_, pass.data(network_.output), totals,
         gradient);
  }
}

}  // namespace sweep::cuda
