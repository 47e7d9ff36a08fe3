#include "core/kernels/cuda/program.h"

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
  return compile(network, options.batch_size, options.seed, autotuner);
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

// The samples of the passes over a batch of `images`.
std::vector<int> pass_sizes(Task task, int images) {
  if (task != Task::kTrainParts) return {images};
  const int least = images / kGradientParts;
  std::vector<int> sizes;
  if (least > 0) sizes.push_back(least);
  if (images % kGradientParts != 0) sizes.push_back(least + 1);
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
      memory_(network_.memory_bytes,
              "the activations and gradients of a batch of " + std::to_string(options.batch_size)),
      parameters_(zeros(stream, network.parameter_count(), "the parameters")),
      gradient_(zeros(stream, network.parameter_count(), "the gradient")),
      buffers_(to_device(stream, initial_buffers(network), "the running statistics")),
      mean_(to_device(stream, options.transform.mean, "the pixels' mean")),
      std_(to_device(stream, options.transform.std, "the pixels' deviation")),
      part_gradients_(options.parts.none() ? Array<float>()
                                           : zeros(stream, kGradientParts * network.parameter_count(),
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
          static_cast<std::size_t>((options.parts.none() ? 1 : kGradientParts) *
                                   (network_.head ? kStackBlocks : loss_totals_count(options.batch_size))),
          "the sums of an epoch"),
      optimizer_(make_optimizer(stream)) {
  augment_.steps = augment_steps_.data();
  if (!options.parts.none()) part_sum_.emplace(stream, gradient_sources());
  stream.clear(totals_.data(), totals_.size() * sizeof(DeviceTotals));
}

void Program::allocate_augmented(Stream& stream, std::size_t value_bytes) {
  const AugmentLayout layout = augment_layout(options_.batch_size, augment_.targets);
  const std::size_t values = static_cast<std::size_t>(channels_) * static_cast<std::size_t>(plane_);
  const std::size_t bytes =
      layout.samples + static_cast<std::size_t>(options_.batch_size) * values * value_bytes;
  if (augmented_.size() >= bytes) return;
  stream.wait();
  std::erase_if(graphs_, [](const auto& entry) { return entry.first.task == Task::kAugmentAndTrain; });
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

std::vector<GradientSource> Program::gradient_sources() const {
  std::vector<GradientSource> sources;
  const auto add = [&](const std::vector<PartialGradient>& parts) {
    for (const PartialGradient& part : parts) {
      const auto* begin = reinterpret_cast<const float*>(memory_.data() + network_.plan.offset(part.slot));
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
  if (options_.parts.none())
    return Optimizer(stream, options_.optimizer, options_.clip_norm, gradient_sources(), arrays);
  const auto count = static_cast<int>(parameters_.size());
  return Optimizer(stream, options_.optimizer, options_.clip_norm,
                   {{part_gradients_.data(), 0, count, kGradientParts}}, arrays);
}

void Program::take_step(Stream& stream, const StepInputs& inputs) const {
  optimizer_.step(stream, reinterpret_cast<const StepInput*>(inputs.first));
}

const float* Program::outputs() const {
  return reinterpret_cast<const float*>(memory_.data() + network_.plan.offset(network_.output));
}

void Program::run(Stream& stream, Task task, int steps, int images, const StepInputs& inputs) {
  stream.launch(graph(stream, task, steps, images, inputs));
}

const Graph& Program::graph(Stream& stream, Task task, int steps, int images, const StepInputs& inputs) {
  const Key key{task, steps, images};
  auto found = graphs_.find(key);
  if (found == graphs_.end()) {
    // Before the capture: libraries choose algorithms here, which a capture forbids.
    for (const int size : pass_sizes(task, images)) {
      for (const auto& op : network_.ops) op->prepare(size);
    }
    Graph recorded = stream.capture([&] {
      for (int i = 0; i < steps; ++i) {
        std::byte* input = inputs.first + static_cast<std::size_t>(i) * inputs.stride;
        const auto* of_step = reinterpret_cast<const StepInput*>(input);
        const auto* rows = reinterpret_cast<const std::uint32_t*>(input + inputs.rows_offset);
        if (task == Task::kAugmentAndTrain) {
          const AugmentedBatch batch = augmented_batch();
          const auto* numbers = reinterpret_cast<const std::uint32_t*>(input + inputs.numbers_offset);
          augment_samples(stream, of_step, rows, numbers, images, augment_, batch);
          of_step = batch.input;
          rows = batch.rows;
        }
        if (task == Task::kTrainParts) {
          train_parts(stream, images, of_step, rows);
        } else {
          step(stream, task, {.images = images}, of_step, rows, totals_of_part(options_.parts.first));
        }
      }
    });
    found = graphs_.emplace(key, std::move(recorded)).first;
  }
  return found->second;
}

DeviceTotals* Program::totals_of_part(int part) const {
  const std::size_t parts = options_.parts.none() ? 1 : kGradientParts;
  return totals_.data() + totals_.size() / parts * static_cast<std::size_t>(part);
}

// `rows` are those of this device's samples.
void Program::train_parts(Stream& stream, int images, const StepInput* input,
                          const std::uint32_t* rows) const {
  const auto samples = static_cast<std::size_t>(images);
  const auto [first_part, end_part] = options_.parts;
  for (int part = first_part; part < end_part; ++part) {
    const std::size_t begin = part_begin(samples, part), end = part_begin(samples, part + 1);
    float* gradient = part_gradients_.data() + static_cast<std::size_t>(part) * parameters_.size();
    if (begin == end) {
      stream.clear(gradient, parameters_.size() * sizeof(float));
      continue;
    }
    step(stream, Task::kTrainParts,
         {.images = static_cast<int>(end - begin), .first = static_cast<int>(begin)}, input,
         rows + (begin - part_begin(samples, first_part)), totals_of_part(part));
    part_sum_->run(stream, gradient);
  }
}

void Program::step(Stream& stream, Task task, const Share& share, const StepInput* input,
                   const std::uint32_t* rows, DeviceTotals* totals) const {
  const bool training = task == Task::kTrain || task == Task::kAugmentAndTrain || task == Task::kTrainParts;
  const int images = share.images;
  const Pass pass{
      .stream = stream,
      .images = images,
      .training = training,
      .first_image = share.first,
      .input = input,
      .rows = rows,
      .parameters = parameters_.data(),
      .buffers = buffers_.data(),
      .normalisation = {mean_.size() > 0 ? mean_.data() : nullptr, std_.size() > 0 ? std_.data() : nullptr},
      .plan = network_.plan,
      .memory = memory_.data()};
  if (network_.reads_input)
    load_samples(stream, input, rows, images, channels_, plane_, pass.normalisation,
                 pass.data(network_.input));
  for (const auto& op : network_.ops) op->forward(pass);
  if (network_.head) {
    network_.head->run(pass, task == Task::kPredict ? nullptr : &loss_, totals);
    if (!training) return;
    network_.head->backward_weights(pass);
  } else {
    if (task == Task::kPredict) return;
    float* gradient = training ? pass.data(network_.output_gradient) : nullptr;
    loss(stream, loss_, input, rows, images, outputs_, pass.data(network_.output), totals, gradient);
    if (gradient == nullptr) return;
  }
  for (const Op* op : network_.backward) op->backward(pass);
  if (task != Task::kTrainParts) optimizer_.step(stream, input);
}

}  // namespace sweep::cuda
