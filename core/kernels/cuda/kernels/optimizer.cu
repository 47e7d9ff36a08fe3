#include "core/kernels/cuda/kernels/optimizer.h"

#include <cmath>

#include "core/kernels/cuda/kernels/optimizer_rule.h"
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

  // The gradient of the thread's parameter: in the threads with owned_parameter() ≥ 0. Where there are many
  // parts, groups of the block's threads share them out: one thread alone would wait for one after the other.
  static __device__ float sum_of_parts(const GradientSource& source, const Work& work) {
    __shared__ float sums[kThreads];
    const int thread = static_cast<int>(threadIdx.x), width = work.width;
    const int group = thread / width, groups = static_cast<int>(kThreads) / width;
    const int i = work.first + thread - group * width;
    float sum = 0.0f;
    if (i < source.count) {
      for (int part = group; part < source.parts; part += groups)
        sum += source.parts_begin[static_cast<std::ptrdiff_t>(part) * source.count + i];
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

  // Parameters per block: a power of two, so that a thread adds up some eight parts.
  static int block_width(int parts) {
    constexpr int kPartsPerThread = 8, kLeast = 8;  // eight floats are the least that memory gives at once
    int width = static_cast<int>(kThreads);
    while (width > kLeast && parts * width > kPartsPerThread * static_cast<int>(kThreads)) width /= 2;
    return width;
  }
};

namespace {

using Rule = OptimizerKernels::Rule;
using Work = OptimizerKernels::Work;

// What a block of a kernel that updates parameters loads before it waits for the gradients. The layout of its
// dynamic shared memory.
struct EarlyLoads {
  Work work;
  GradientSource source;
  StepFactors factors;
  float values[1 + kMaxOptimizerStates][kThreads];  // of each thread's parameter: the weight, its state
};

// The arguments of these kernels.
struct StepArguments {
  Rule rule;
  const StepInput* input;
  const GradientSource* sources;
  const Work* works;
  OptimizerArrays arrays;
  bool loads_parameters_early;

  // The tables and the factors are written before a graph starts, and the state as the parameters.
  __device__ void load_early() const {
    auto& early = *dynamic_shared<EarlyLoads>();
    const Work work = works[blockIdx.x];
    const GradientSource source = sources[work.source];
    if (threadIdx.x == 0) {
      early.work = work;
      early.source = source;
      early.factors = input->factors;
    }
    const int owned = OptimizerKernels::owned_parameter(source, work), i = source.offset + owned;
    if (!loads_parameters_early || owned < 0) return;
    copy_async(&early.values[0][threadIdx.x], &arrays.parameters[i]);
    for (std::size_t s = 0; s < kMaxOptimizerStates; ++s) {
      if (arrays.state[s] != nullptr) copy_async(&early.values[1 + s][threadIdx.x], &arrays.state[s][i]);
    }
  }

  // The values of the thread's parameter i, once its copies have arrived.
  __device__ ParameterValues values(const EarlyLoads& early, int i) const {
    if (!loads_parameters_early) return ParameterValues(arrays, i);
    ParameterValues values;
    values.weight = early.values[0][threadIdx.x];
    for (std::size_t s = 0; s < kMaxOptimizerStates; ++s) {
      if (arrays.state[s] != nullptr) values.state[s] = early.values[1 + s][threadIdx.x];
    }
    return values;
  }
};

struct StepKernel {
  static constexpr unsigned kMaxThreads = kThreads;
  StepArguments arguments;

  __device__ void load_early() const { arguments.load_early(); }
  __device__ void operator()() const {
    const auto& early = *dynamic_shared<EarlyLoads>();
    wait_for_copies();
    __syncthreads();
    const float g = OptimizerKernels::sum_of_parts(early.source, early.work);
    const int owned = OptimizerKernels::owned_parameter(early.source, early.work);
    if (owned < 0) return;
    const int i = early.source.offset + owned;
    arguments.arrays.gradient[i] = g;
    ParameterValues values = arguments.values(early, i);
    arguments.rule.update(early.factors, g, values);
    values.store(arguments.arrays, i);
  }
};

__global__ void sum_kernel(const GradientSource* sources, const Work* works, bool add, float* gradient) {
  const Work work = works[blockIdx.x];
  const GradientSource source = sources[work.source];
  const float g = OptimizerKernels::sum_of_parts(source, work);
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
    const float g = OptimizerKernels::sum_of_parts(source, work);
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

  __device__ void load_early() const { arguments.load_early(); }
  __device__ void operator()() const {
    const auto& early = *dynamic_shared<EarlyLoads>();
    wait_for_copies();
    double square = 0;
    for (int i = static_cast<int>(threadIdx.x); i < square_count; i += static_cast<int>(kThreads))
      square += squares[i];
    square = block_sum(square);
    // As torch.nn.utils.clip_grad_norm_.
    const double factor = clip_norm / (sqrt(square) + 1e-6);
    const int owned = OptimizerKernels::owned_parameter(early.source, early.work);
    if (owned < 0) return;
    const int i = early.source.offset + owned;
    float g = arguments.arrays.gradient[i];
    // A NaN makes no gradient shorter.
    if (factor < 1) {
      g *= static_cast<float>(factor);
      arguments.arrays.gradient[i] = g;
    }
    ParameterValues values = arguments.values(early, i);
    arguments.rule.update(early.factors, g, values);
    values.store(arguments.arrays, i);
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
    const int width = OptimizerKernels::block_width(sources[s].parts);
    for (int first = 0; first < sources[s].count; first += width)
      works.push_back({static_cast<int>(s), first, width});
  }
  sources_ = to_device(stream, sources, "the optimizer's tables");
  works_ = to_device(stream, works, "the optimizer's tables");
}

void GradientSum::run(Stream& stream, bool add, float* gradient) const {
  launch(stream, sum_kernel, {table_.blocks()}, {kThreads}, table_.sources(), table_.works(), add, gradient);
}

Optimizer::Optimizer(Stream& stream, const OptimizerOptions& options, double clip_norm,
                     const std::vector<GradientSource>& sources, const OptimizerArrays& arrays)
    : options_(options), clip_norm_(clip_norm), arrays_(arrays), table_(stream, sources) {
  if (clips()) join(0, square_count());
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

void Optimizer::update(Stream& stream, const StepInput* input) const {
  const StepArguments arguments{.rule = OptimizerKernels::make_rule(options_),
                                .input = input,
                                .sources = table_.sources(),
                                .works = table_.works(),
                                .arrays = arrays_,
                                .loads_parameters_early = stream.may_load_early(Changes::kParameters)};
  const Extent grid{table_.blocks()};  // none for layers without parameters
  const Block block{{kThreads}, sizeof(EarlyLoads)};
  if (clips()) {
    launch_functor(stream, ClippedStepKernel{arguments, clip_norm_, all_squares(), all_squares_}, grid, block,
                   Changes::kParameters);
  } else {
    launch_functor(stream, StepKernel{arguments}, grid, block, Changes::kParameters);
  }
}

void Optimizer::step(Stream& stream, const StepInput* input) const {
  if (clips()) sum_squares(stream);
  update(stream, input);
}

}  // namespace sweep::cuda
