#include "core/kernels/cuda/kernels/optimizer.h"

#include <cmath>

#include "core/kernels/cuda/kernels/optimizer_rule.h"
#include "core/kernels/cuda/kernels/stack_gradient_tiles.h"
#include "core/kernels/cuda/runtime/kernel.h"

namespace sweep::cuda {

struct OptimizerKernels {
  using Rule = OptimizerRule;
  using Work = GradientTable::Work;

  static float real(double x) { return static_cast<float>(x); }

  static Rule rule_of(const SgdOptions& sgd) {
    return {.kind = Rule::Kind::kSgd,
            .decay = real(sgd.weight_decay),
            .momentum = sgd.momentum != 0,
            .nesterov = sgd.nesterov};
  }

  static Rule rule_of(const AdamOptions& adam) {
    return {.kind = Rule::Kind::kAdam,
            .decay = adam.decoupled ? 0.0f : real(adam.weight_decay),
            .keep2 = real(adam.beta2),
            .take2 = real(1 - adam.beta2),
            .eps = real(adam.eps)};
  }

  static Rule rule_of(const RmspropOptions& rmsprop) {
    return {.kind = Rule::Kind::kRmsprop,
            .decay = real(rmsprop.weight_decay),
            .keep2 = real(rmsprop.alpha),
            .take2 = real(1 - rmsprop.alpha),
            .eps = real(rmsprop.eps),
            .momentum = rmsprop.momentum != 0,
            .centered = rmsprop.centered};
  }

  // Not an overload of rule_of(), to which every option would convert if its own were missing.
  static Rule make_rule(const OptimizerOptions& options) {
    return std::visit([](const auto& optimizer) { return rule_of(optimizer); }, options);
  }

  static void set_factors(const SgdOptions& sgd, double, std::int64_t, StepFactors& factors) {
    factors.keep = real(sgd.momentum);
    factors.take = real(1 - sgd.dampening);
  }

  static void set_factors(const AdamOptions& adam, double learning_rate, std::int64_t step,
                          StepFactors& factors) {
    // Scalars in double and then rounded, as PyTorch's single-tensor implementation has them.
    const double correction1 = 1 - std::pow(adam.beta1, static_cast<double>(step));
    const double correction2 = 1 - std::pow(adam.beta2, static_cast<double>(step));
    factors.rate = real(-learning_rate / correction1);
    factors.scale = real(1 / std::sqrt(correction2));
    factors.take = real(1 - adam.beta1);
    if (adam.decoupled) factors.shrink = real(1 - learning_rate * adam.weight_decay);
  }

  static void set_factors(const RmspropOptions& rmsprop, double, std::int64_t, StepFactors& factors) {
    factors.keep = real(rmsprop.momentum);
  }

  // The gradient of the thread's parameter: in the threads with owned_parameter() ≥ 0. If there are many
  // slices, groups of the block's threads share them: one thread would wait for one after the other.
  static __device__ float sum_of_slices(const GradientSource& source, const Work& work) {
    __shared__ float sums[kThreads];
    const int thread = static_cast<int>(threadIdx.x), width = work.width;
    const int group = thread / width, groups = static_cast<int>(kThreads) / width;
    const int i = work.first + thread - group * width;
    float sum = 0.0f;
    if (i < source.count) {
      for (int slice = group; slice < source.slices; slice += groups)
        sum += source.slices_begin[static_cast<std::ptrdiff_t>(slice) * source.stride + i];
    }
    if (groups == 1) return sum;
    sums[thread] = sum;
    __syncthreads();
    if (group > 0) return 0.0f;
    for (int other = 1; other < groups; ++other) sum += sums[other * width + thread];
    return sum;
  }

  // The parameter of the source that the thread updates, or −1.
  static __device__ int owned_parameter(const GradientSource& source, const Work& work) {
    const int thread = static_cast<int>(threadIdx.x), i = work.first + thread;
    return thread < work.width && i < source.count ? i : -1;
  }

  // Parameters per block: a power of two, so that a thread adds up some eight slices.
  static int block_width(int slices) {
    constexpr int kSlicesPerThread = 8, kLeast = 8;  // eight floats are the least that memory gives at once
    int width = static_cast<int>(kThreads);
    while (width > kLeast && slices * width > kSlicesPerThread * static_cast<int>(kThreads)) width /= 2;
    return width;
  }
};

namespace {

using Rule = OptimizerKernels::Rule;
using Work = OptimizerKernels::Work;

// What a thread needs to update its parameter. It is loaded before the gradient is added up, so that it has
// arrived by then.
struct Update {
  int parameter;  // −1: the thread has none
  StepFactors factors;
  ParameterValues values;
};

// The arguments of these kernels.
struct StepArguments {
  Rule rule;
  const StepInput* input;
  const GradientSource* sources;
  const Work* works;
  OptimizerArrays arrays;

  __device__ Update load(int parameter) const {
    Update update{parameter, input->factors, {}};
    if (parameter >= 0) update.values = ParameterValues(arrays, parameter);
    return update;
  }

  __device__ Update load(const GradientSource& source, const Work& work) const {
    const int owned = OptimizerKernels::owned_parameter(source, work);
    return load(owned < 0 ? -1 : source.offset + owned);
  }

  // Updates the thread's parameter, whose gradient is `g`.
  __device__ void store(Update& update, float g) const {
    rule.update(update.factors, g, update.values);
    update.values.store(arrays, update.parameter);
  }

  // Adds up the slices of work number `number`, and updates its parameters.
  __device__ void step(int number) const {
    const Work work = works[number];
    const GradientSource source = sources[work.source];
    Update update = load(source, work);
    const float g = OptimizerKernels::sum_of_slices(source, work);
    if (update.parameter < 0) return;
    arrays.gradient[update.parameter] = g;
    store(update, g);
  }
};

struct StepKernel {
  static constexpr unsigned kMaxThreads = kThreads;
  StepArguments arguments;

  __device__ void operator()() const { arguments.step(static_cast<int>(blockIdx.x)); }
};

// A step whose first blocks compute the weight gradients of a stack themselves.
struct StackStepKernel {
  static constexpr unsigned kMaxThreads = kThreads;
  static_assert(StackGradientTiles::kTileThreads == kThreads);
  StepArguments arguments;
  StackGradientTiles tiles;

  __device__ void operator()() const {
    const int block = static_cast<int>(blockIdx.x);
    if (block >= tiles.blocks) {
      arguments.step(block - tiles.blocks);
      return;
    }
    const StackGradientTiles::Tile tile = tiles.tile();
    Update update = arguments.load(tile.parameter);
    const float g = tiles.gradient(tile, dynamic_shared<float>());
    if (tile.parameter < 0) return;
    arguments.arrays.gradient[tile.parameter] = g;
    arguments.store(update, g);
  }
};

__global__ void sum_kernel(const GradientSource* sources, const Work* works, bool add, float* gradient) {
  const Work work = works[blockIdx.x];
  const GradientSource source = sources[work.source];
  const float g = OptimizerKernels::sum_of_slices(source, work);
  const int i = OptimizerKernels::owned_parameter(source, work);
  if (i < 0) return;
  float& to = gradient[source.offset + i];
  to = add ? to + g : g;
}

// With clipping there are two launches: the length of the whole gradient has to be known first.
struct SquaresKernel {
  static constexpr unsigned kMaxThreads = kThreads;
  const GradientSource* sources;
  const Work* works;
  float* gradient;
  double* squares;

  __device__ void operator()() const {
    const Work work = works[blockIdx.x];
    const GradientSource source = sources[work.source];
    const float g = OptimizerKernels::sum_of_slices(source, work);
    const int i = OptimizerKernels::owned_parameter(source, work);
    double square = 0;
    if (i >= 0) {
      gradient[source.offset + i] = g;
      square = static_cast<double>(g) * static_cast<double>(g);
    }
    square = block_sum(square);
    if (threadIdx.x == 0) squares[blockIdx.x] = square;
  }
};

struct ClippedStepKernel {
  static constexpr unsigned kMaxThreads = kThreads;
  StepArguments arguments;
  double clip_norm;
  const double* squares;
  int square_count;

  __device__ void operator()() const {
    const Work work = arguments.works[blockIdx.x];
    Update update = arguments.load(arguments.sources[work.source], work);
    double square = 0;
    for (int i = static_cast<int>(threadIdx.x); i < square_count; i += static_cast<int>(kThreads))
      square += squares[i];
    square = block_sum(square);
    // Like torch.nn.utils.clip_grad_norm_.
    const double factor = clip_norm / (sqrt(square) + 1e-6);
    if (update.parameter < 0) return;
    float g = arguments.arrays.gradient[update.parameter];
    // A NaN makes no gradient shorter.
    if (factor < 1) {
      g *= static_cast<float>(factor);
      arguments.arrays.gradient[update.parameter] = g;
    }
    arguments.store(update, g);
  }
};

}  // namespace

StepFactors step_factors(const OptimizerOptions& options, double learning_rate, std::int64_t step) {
  StepFactors factors{.rate = static_cast<float>(-learning_rate), .first = step == 1 ? 1u : 0u};
  std::visit(
      [&](const auto& optimizer) { OptimizerKernels::set_factors(optimizer, learning_rate, step, factors); },
      options);
  return factors;
}

GradientTable::GradientTable(Stream& stream, const std::vector<GradientSource>& sources) {
  std::vector<Work> works;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const int width = OptimizerKernels::block_width(sources[s].slices);
    for (int first = 0; first < sources[s].count; first += width)
      works.push_back({static_cast<int>(s), first, width});
  }
  sources_ = to_device(stream, sources, "the optimizer's tables");
  works_ = to_device(stream, works, "the optimizer's tables");
}

void GradientTable::add_up(Stream& stream, bool add, float* gradient) const {
  // No blocks for layers without parameters.
  launch(stream, sum_kernel, {blocks()}, {kThreads}, sources(), works(), add, gradient);
}

Optimizer::Optimizer(Stream& stream, const OptimizerOptions& options, double clip_norm,
                     const std::vector<GradientSource>& sources, const OptimizerArrays& arrays,
                     std::size_t stack_layers)
    : options_(options), clip_norm_(clip_norm), arrays_(arrays), table_(stream, sources) {
  if (clips()) join(0, square_count());
  if (stack_layers == 0) return;
  const auto first = sources.end() - static_cast<std::ptrdiff_t>(stack_layers);
  rest_ = GradientTable(stream, {sources.begin(), first});
  for (auto source = first; source != sources.end(); ++source) stack_offsets_.push_back(source->offset);
}

void Optimizer::join(int first, int all) {
  first_square_ = first;
  all_squares_ = all;
  squares_ = Array<double>(static_cast<std::size_t>(all), "the gradient's length");
}

void Optimizer::sum_squares(Stream& stream) const {
  launch_functor(stream, SquaresKernel{table_.sources(), table_.works(), arrays_.gradient, squares()},
                 {table_.blocks()}, {{kThreads}});
}

namespace {

StepArguments step_arguments(const OptimizerOptions& options, const StepInput* input,
                             const GradientTable& table, const OptimizerArrays& arrays) {
  return {.rule = OptimizerKernels::make_rule(options),
          .input = input,
          .sources = table.sources(),
          .works = table.works(),
          .arrays = arrays};
}

}  // namespace

void Optimizer::update(Stream& stream, const StepInput* input) const {
  const StepArguments arguments = step_arguments(options_, input, table_, arrays_);
  const Extent grid{table_.blocks()};  // none for layers without parameters
  const Block block{{kThreads}};
  if (clips()) {
    launch_functor(stream, ClippedStepKernel{arguments, clip_norm_, all_squares(), all_squares_}, grid,
                   block);
  } else {
    launch_functor(stream, StepKernel{arguments}, grid, block);
  }
}

void Optimizer::step(Stream& stream, const StepInput* input) const {
  if (clips()) sum_squares(stream);
  update(stream, input);
}

bool Optimizer::takes_stack(int images, int slices) const {
  return !stack_offsets_.empty() && !clips() && StackGradientTiles::fits(images, slices);
}

void Optimizer::step_with_stack(Stream& stream, const StepInput* input,
                                std::span<const LinearGradient> layers, int images, int slices) const {
  const StackStepKernel kernel{step_arguments(options_, input, rest_, arrays_),
                               StackGradientTiles(layers, stack_offsets_, images, slices)};
  const std::size_t tile_bytes = static_cast<std::size_t>(kernel.tiles.shared_floats()) * sizeof(float);
  launch_functor(stream, kernel, {static_cast<unsigned>(kernel.tiles.blocks) + rest_.blocks()},
                 {{kThreads}, tile_bytes});
}

}  // namespace sweep::cuda
