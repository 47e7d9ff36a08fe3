#include "core/kernels/cuda/program.h"

#include <algorithm>

#include "core/base/error.h"
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
  KernelRule rule(options.device, options.deterministic);
  return compile(network, options.batch_size, options.seed, options.shares.count > 1, rule, options.stage);
}

// A stage's share of the parameters, or of the buffers, which are in the order of the layers.
ArrayRange range_of(const Network& network, const StageLayers& stage, std::span<const Parameter> all,
                    std::vector<std::size_t> Layer::*numbers) {
  constexpr std::size_t kAlignedFloats = 64;
  ArrayRange range;
  const auto layers = network.layers();
  for (std::size_t layer = 0; layer < layers.size() && stage.of_layer(layer) <= stage.index; ++layer) {
    for (const std::size_t number : layers[layer].*numbers)
      range.end = all[number].offset + all[number].count;
    if (stage.of_layer(layer) < stage.index) range.first = range.end;
  }
  range.base = range.first / kAlignedFloats * kAlignedFloats;
  return range;
}

std::size_t floats_of(const ArrayRange& range) { return range.end - range.base; }

std::vector<float> initial_buffers_of(const Network& network, const ArrayRange& range) {
  const std::vector<float> all = initial_buffers(network);
  return {all.begin() + static_cast<std::ptrdiff_t>(range.base),
          all.begin() + static_cast<std::ptrdiff_t>(range.end)};
}

int plane_of(const Shape& input) {
  return static_cast<int>(element_count(input)) / static_cast<int>(input[0]);
}

// Empty if samples are not images: no loader augments them.
AugmentPlan augment_plan(const Network& network, const ProgramOptions& options) {
  const Shape& shape = network.input();
  if (options.augment.steps.empty() || shape.size() != 3) return {};
  if (options.augment.steps.size() > kMaxAugmentSteps)
    throw ConfigError("augment: at most " + std::to_string(kMaxAugmentSteps) + " changes are possible");
  return {.steps = nullptr,
          .count = static_cast<int>(options.augment.steps.size()),
          .seed = options.augment.seed,
          .repeat = options.augment.repeat,
          .channels = static_cast<int>(shape[0]),
          .height = static_cast<int>(shape[1]),
          .width = static_cast<int>(shape[2]),
          .targets = static_cast<int>(element_count(network.output()))};
}

// Where the arrays of an AugmentedBatch begin, after its input. Offsets in bytes.
struct AugmentLayout {
  std::size_t rows, targets, samples;
};
AugmentLayout augment_layout(int images, int targets) {
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
      parameter_range_(range_of(network, options.stage, network.parameters(), &Layer::parameters)),
      buffer_range_(range_of(network, options.stage, network.buffers(), &Layer::buffers)),
      network_(compiled(network, options)),
      sums_(largest_sums() * static_cast<std::size_t>(options.shares.count), "the sums of a batch's shares"),
      memory_(blocks() * network_.memory_bytes,
              "the activations and gradients of a batch of " +
                  std::to_string(blocks() * static_cast<std::size_t>(options.batch_size))),
      parameters_(zeros(stream, floats_of(parameter_range_), "the parameters")),
      gradient_(zeros(stream, floats_of(parameter_range_), "the gradient")),
      buffers_(to_device(stream, initial_buffers_of(network, buffer_range_), "the running statistics")),
      mean_(to_device(stream, options.transform.mean, "the pixels' mean")),
      std_(to_device(stream, options.transform.std, "the pixels' deviation")),
      share_gradients_(options.shares.is_whole()
                           ? Array<float>()
                           : zeros(stream,
                                   static_cast<std::size_t>(options.shares.count) * parameters_.size(),
                                   "the gradients of a batch's shares")),
      class_weights_(to_device(stream, options.loss.class_weights, "the weights of the classes")),
      loss_{.kind = options.loss.kind,
            .smoothing = static_cast<float>(options.loss.label_smoothing),
            .beta = static_cast<float>(options.loss.beta),
            .class_weights = class_weights_.size() > 0 ? class_weights_.data() : nullptr},
      augment_(augment_plan(network, options)),
      augment_steps_(to_device(stream, options.augment.steps, "the list of augmentations")),
      state_(make_state(stream, options.optimizer, floats_of(parameter_range_))),
      totals_(
          static_cast<std::size_t>(options.shares.count *
                                   (network_.stack ? kStackTotals : loss_totals_count(options.batch_size))),
          "the sums of an epoch"),
      optimizer_(make_optimizer(stream)) {
  augment_.steps = augment_steps_.data();
  if (!options.shares.is_whole()) {
    for (std::size_t block = 0; block < blocks(); ++block)
      block_sums_.emplace_back(stream, gradient_sources(memory_.data() + block * network_.memory_bytes));
  }
  stream.clear(totals_.data(), totals_.size() * sizeof(Totals));
}

const Array<float>& Program::array(const EngineArray& which) const {
  switch (which.kind) {
    case EngineArray::kParameters:
      return parameters_;
    case EngineArray::kBuffers:
      return buffers_;
    case EngineArray::kGradient:
      return gradient_;
    case EngineArray::kState:
      break;
  }
  return state_[which.index];
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

// Bytes of the largest sums that shares leave for each other.
std::size_t Program::largest_sums() const {
  std::size_t largest = 0;
  if (options_.shares.count == 1) return largest;
  for (const auto& op : network_.ops)
    largest = std::max({largest, op->sum_bytes(Phase::kForward), op->sum_bytes(Phase::kBackward)});
  return largest;
}

// Shares whose activations are there at the same time.
std::size_t Program::blocks() const {
  const int own = options_.shares.end - options_.shares.first;
  const bool together = sums_.size() > 0 || options_.shares_together;
  return together ? static_cast<std::size_t>(std::max(1, own)) : 1;
}

std::size_t Program::block_of_share(int share) const {
  return blocks() == 1 ? 0 : static_cast<std::size_t>(share - options_.shares.first);
}

std::vector<GradientSource> Program::gradient_sources(const std::byte* block) const {
  std::vector<GradientSource> sources;
  const auto add = [&](const std::vector<PartialGradient>& partials) {
    for (const PartialGradient& partial : partials) {
      const auto* begin = reinterpret_cast<const float*>(block + network_.plan.offset(partial.slot));
      const int offset = partial.offset - static_cast<int>(parameter_range_.base);
      sources.push_back({begin, offset, partial.count, partial.slices, partial.count});
    }
  };
  for (const auto& op : network_.ops) add(op->gradients());
  if (network_.stack) add(network_.stack->gradients());
  return sources;
}

// Layer by layer as the above, so that the squares of a gradient are added up in the same order wherever the
// network is cut into stages.
std::vector<GradientSource> Program::share_gradient_sources() const {
  std::vector<GradientSource> sources = gradient_sources(memory_.data());
  for (GradientSource& source : sources) {
    source.slices_begin = share_gradients_.data() + source.offset;
    source.slices = options_.shares.count;
    source.stride = static_cast<int>(parameters_.size());
  }
  return sources;
}

Optimizer Program::make_optimizer(Stream& stream) const {
  OptimizerArrays arrays{parameters_.data(), gradient_.data(), {}};
  for (std::size_t i = 0; i < state_.size(); ++i) arrays.state[i] = state_[i].data();
  if (options_.shares.is_whole())
    return Optimizer(stream, options_.optimizer, options_.clip_norm, gradient_sources(memory_.data()), arrays,
                     network_.stack ? network_.stack->gradients().size() : 0);
  return Optimizer(stream, options_.optimizer, options_.clip_norm, share_gradient_sources(), arrays);
}

const float* Program::outputs() const {
  return reinterpret_cast<const float*>(memory_.data() + network_.plan.offset(network_.output));
}

}  // namespace sweep::cuda
