#include "core/kernels/cpu/cpu_engine.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/threads.h"
#include "core/kernels/cpu/kernels/optimizer_kernels.h"

namespace sweep::cpu {
namespace {

int threads_of(const EngineOptions& options) {
  return options.threads > 0 ? options.threads : available_cores();
}

// Parts of the gradient whose squares are added up at once.
constexpr std::size_t kSumsAtOnce = 4;

// sums[k] = the sum of the squares of values [begins[k], begins[k + 1]), in double and in order. At once,
// because an addition waits for the one before it in its sum.
void sums_of_squares(const float* values, const std::array<std::size_t, kSumsAtOnce + 1>& begins,
                     double* sums) {
  std::array<double, kSumsAtOnce> at_once{};
  const auto add = [&](std::size_t k, std::size_t i) {
    const auto value = static_cast<double>(values[begins[k] + i]);
    at_once[k] += value * value;
  };
  std::size_t shortest = begins[1] - begins[0];
  for (std::size_t k = 1; k < kSumsAtOnce; ++k) shortest = std::min(shortest, begins[k + 1] - begins[k]);
  for (std::size_t i = 0; i < shortest; ++i) {
    for (std::size_t k = 0; k < kSumsAtOnce; ++k) add(k, i);
  }
  for (std::size_t k = 0; k < kSumsAtOnce; ++k) {
    for (std::size_t i = shortest; i < begins[k + 1] - begins[k]; ++i) add(k, i);
  }
  std::ranges::copy(at_once, sums);
}

DevicePlace place_in(const Communicator* group) {
  if (group == nullptr) return {};
  return {static_cast<std::size_t>(group->rank()), static_cast<std::size_t>(group->size())};
}

// One of the engine's arrays in the program's layout.
template <class Memory>
auto& array_of(Memory& memory, const EngineArray& which) {
  if (which.kind == EngineArray::kState) return memory.state[which.index];
  return which.kind == EngineArray::kGradient ? memory.gradient : memory.parameters;
}

}  // namespace

EngineMemory::EngineMemory(const Network& network, const EngineOptions& options, const Program& program,
                           std::size_t threads, DevicePlace place)
    : partials(partial_count(network, program, block_count(options.batch_size)), program.parameter_floats(),
               threads, place, turns_of(options, program)),
      parameters(program.parameter_floats()),
      gradient(program.parameter_floats()) {
  const std::size_t blocks = most_blocks_at_once(network, program, block_count(options.batch_size),
                                                 turns_of(options, program), place);
  std::size_t count = threads * program.blocks_at_once();
  if (program.phases() > 1) count = std::max(count, blocks);
  if (options.parallel.has_stages())
    count = std::max(count, StagedPass::workspace_count(network, options, program, blocks));
  for (std::size_t i = 0; i < count; ++i) workspaces.push_back(program.make_workspace());
  for (std::size_t i = 0; i < threads; ++i) {
    scratch.emplace_back(program.scratch_floats());
    numbers.emplace_back(static_cast<std::size_t>(network.output()[0]) * kLanes);
  }
  for (std::size_t i = 0; i < state_names(options.optimizer).size(); ++i)
    state.emplace_back(program.parameter_floats());
}

CpuEngine::CpuEngine(const Network& network, const EngineOptions& options, Communicator* group)
    : network_(network),
      options_(options),
      program_(network_, block_count(options.batch_size)),
      pool_(threads_of(options)),
      outputs_(static_cast<std::size_t>(network.output()[0])),
      plane_(element_count(network.input()) / static_cast<std::size_t>(network.input()[0])),
      group_(group),
      place_(place_in(group)),
      memory_(network_, options_, program_, pool_.size(), place_),
      totals_(partial_count(network_, program_, block_count(options.batch_size))) {
  if (options.parallel.has_stages()) staged_.emplace(network_, options_, program_, pool_.size());
}

void CpuEngine::train(const Batch& batch, const StepValues& values) {
  check(batch);
  if (batch.size() == 0) return;
  options_.optimizer = optimizer_of_step(options_.optimizer, values);
  run_passes(batch);
  step(values.learning_rate);
}

std::vector<float> CpuEngine::array(const EngineArray& which) const {
  std::vector<float> values(array_size(which, network_));
  if (which.kind != EngineArray::kBuffers) {
    program_.export_parameters(array_of(memory_, which).data(), values);
    return values;
  }
  for (std::size_t i = 0; i + 1 < program_.phases(); ++i)
    program_.batch_norm(i).batch_norm->export_buffers(values);
  return values;
}

void CpuEngine::set_array(const EngineArray& which, std::span<const float> values) {
  check_array(which, values, network_);
  if (which.kind != EngineArray::kBuffers) {
    program_.import_parameters(values, array_of(memory_, which).data());
    if (which.kind == EngineArray::kParameters) prepare_ops();
    return;
  }
  for (std::size_t i = 0; i + 1 < program_.phases(); ++i)
    program_.batch_norm(i).batch_norm->import_buffers(values);
}

void CpuEngine::prepare_ops() {
  pool_.run(program_.op_count(),
            [&](std::size_t op, std::size_t) noexcept { program_.prepare(op, memory_.parameters.data()); });
}

// Reduces the partial gradients and updates the parameters. The parameter array is cut into parts of 64
// cache lines, whatever the number of threads, because the clipping norm is a sum over parts. Without
// clipping, a part is updated while its gradient is still in the cache.
void CpuEngine::step(double learning_rate) {
  ++steps_;
  const std::size_t cache_lines = program_.parameter_floats() / kLanes;
  constexpr std::size_t kCacheLinesPerPart = 64;
  const std::size_t parts = (cache_lines + kCacheLinesPerPart - 1) / kCacheLinesPerPart;
  const auto begin_of = [&](std::size_t part) { return part_begin(cache_lines, parts, part) * kLanes; };
  const bool has_total = memory_.partials.swap_total(memory_.gradient);
  float* const gradient = memory_.gradient.data();
  const auto add_up = [&](std::size_t begin, std::size_t end) {
    if (!has_total) memory_.partials.total(begin, end - begin, gradient + begin);
  };
  if (options_.clip_norm <= 0) {
    pool_.run(parts, [&](std::size_t part, std::size_t) noexcept {
      add_up(begin_of(part), begin_of(part + 1));
      update(begin_of(part), begin_of(part + 1), learning_rate);
    });
  } else {
    const std::size_t groups = (parts + kSumsAtOnce - 1) / kSumsAtOnce;
    norms_.resize(groups * kSumsAtOnce);
    pool_.run(groups, [&](std::size_t group, std::size_t) noexcept {
      std::array<std::size_t, kSumsAtOnce + 1> begins;
      for (std::size_t k = 0; k <= kSumsAtOnce; ++k)
        begins[k] = begin_of(std::min(group * kSumsAtOnce + k, parts));
      add_up(begins.front(), begins.back());
      sums_of_squares(gradient, begins, norms_.data() + group * kSumsAtOnce);
    });
    double squares = 0;
    for (const double part : norms_) squares += part;
    // The same factor as torch.nn.utils.clip_grad_norm_.
    const double factor = std::min(1.0, options_.clip_norm / (std::sqrt(squares) + 1e-6));
    pool_.run(parts, [&](std::size_t part, std::size_t) noexcept {
      const std::size_t begin = begin_of(part), end = begin_of(part + 1);
      if (factor < 1) {
        for (std::size_t i = begin; i < end; ++i) gradient[i] *= static_cast<float>(factor);
      }
      update(begin, end, learning_rate);
    });
  }
  prepare_ops();
}

void CpuEngine::update(std::size_t begin, std::size_t end, double learning_rate) noexcept {
  OptimizerStep step{.learning_rate = learning_rate,
                     .number = steps_,
                     .floats = end - begin,
                     .gradient = memory_.gradient.data() + begin,
                     .past_caches = pool_.size() > 1,
                     .parameters = memory_.parameters.data() + begin};
  for (std::size_t i = 0; i < memory_.state.size(); ++i) step.state[i] = memory_.state[i].data() + begin;
  optimizer_step(options_.optimizer, step);
}

}  // namespace sweep::cpu

namespace sweep {

std::unique_ptr<Engine> make_cpu_engine(const Network& network, const EngineOptions& options) {
  return std::make_unique<cpu::CpuEngine>(network, options, nullptr);
}

std::unique_ptr<ReplicaEngine> make_cpu_replica(const Network& network, const EngineOptions& options,
                                                Communicator& group) {
  std::unique_ptr<ReplicaEngine> replica;
  on_all_ranks(group, [&] { replica = std::make_unique<cpu::CpuEngine>(network, options, &group); });
  return replica;
}

std::size_t cpu_engine_memory(const Network& network, const EngineOptions& options) {
  const auto devices = static_cast<std::size_t>(std::max(options.parallel.data, 1));
  const auto threads = std::max<std::size_t>(static_cast<std::size_t>(cpu::threads_of(options)) / devices, 1);
  std::size_t bytes = 0;
  for (std::size_t rank = 0; rank < devices; ++rank) {
    const cpu::AllocationCount count;
    const std::size_t blocks = cpu::block_count(options.batch_size);
    const cpu::Program program(network, blocks);
    // A single part runs on the first thread. Of more, any thread may take some, and then fills its memory.
    const std::size_t busy = cpu::partial_count(network, program, blocks) <= devices ? 1 : threads;
    const cpu::EngineMemory memory(network, options, program, busy, {rank, devices});
    bytes += count.bytes();
  }
  return bytes;
}

}  // namespace sweep
