#include "core/kernels/cpu/cpu_engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/threads.h"
#include "core/engine/engine_checks.h"
#include "core/kernels/cpu/batch_runner.h"
#include "core/kernels/cpu/kernels/optimizer_kernels.h"
#include "core/kernels/cpu/program.h"
#include "core/kernels/cpu/simd/block.h"
#include "core/kernels/cpu/thread_pool.h"
#include "core/parallel/communicator.h"

namespace sweep {
namespace {

using cpu::AlignedBuffer;
using cpu::kLanes;
using cpu::part_begin;

int threads_of(const EngineOptions& options) {
  return options.threads > 0 ? options.threads : available_cores();
}

// In double and always in the same order.
double sum_of_squares(const float* values, std::size_t floats) {
  double sum = 0;
  for (std::size_t i = 0; i < floats; ++i)
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

// Parameters, their gradient, and the optimizer's arrays, all in the program's layout.
struct ParameterArrays {
  ParameterArrays(const cpu::Program& program, const OptimizerOptions& optimizer)
      : parameters(program.parameter_floats()), gradient(program.parameter_floats()) {
    for (std::size_t i = 0; i < state_names(optimizer).size(); ++i)
      state.emplace_back(program.parameter_floats());
  }

  AlignedBuffer parameters, gradient;
  std::vector<AlignedBuffer> state;
};

class CpuEngine final : public ReplicaEngine {
 public:
  // `group`: nullptr: this is the only device.
  CpuEngine(const Network& network, const EngineOptions& options, Communicator* group)
      : network_(network),
        options_(options),
        program_(network_, cpu::block_count(options.batch_size)),
        pool_(threads_of(options)),
        runner_(network_, options_, program_, pool_, group),
        has_group_(group != nullptr),
        arrays_(program_, options.optimizer),
        state_names_(state_names(options.optimizer)) {}

  void train(const Batch& batch, const StepValues& values) override {
    check(batch);
    if (batch.size() == 0) return;
    options_.optimizer = optimizer_of_step(options_.optimizer, values);
    runner_.train(batch, arrays_.parameters.data(), steps_);
    step(values.learning_rate);
  }

  void evaluate(const Batch& batch, std::span<float> outputs, bool counts) override {
    check(batch);
    check_outputs(outputs, batch, network_, counts);
    runner_.evaluate(batch, arrays_.parameters.data(), outputs, counts);
  }

  std::vector<LayerProfile> profile(const Batch& batch) override {
    check(batch);
    return runner_.profile(batch, arrays_.parameters.data(), steps_);
  }

  Totals take_totals() override { return runner_.take_totals(); }

  std::optional<double> take_communication_seconds() override {
    const double seconds = runner_.take_communication_seconds();
    return has_group_ ? std::optional(seconds) : std::nullopt;
  }

  const SampleShares& sample_shares(std::size_t samples, bool training) override {
    return runner_.sample_shares(samples, training);
  }

  std::vector<float> parameters() const override { return exported(arrays_.parameters); }

  void set_parameters(std::span<const float> values) override {
    import_array(values, arrays_.parameters, "set_parameters");
    pool_.run(program_.prepare_parts(), [&](std::size_t part, std::size_t) noexcept {
      program_.prepare(arrays_.parameters.data(), part);
    });
  }

  std::vector<float> buffers() const override {
    std::vector<float> values(network_.buffer_count());
    for (std::size_t i = 0; i + 1 < program_.phases(); ++i)
      program_.batch_norm(i).batch_norm->export_buffers(values);
    return values;
  }

  void set_buffers(std::span<const float> values) override {
    check_count(values.size(), network_.buffer_count(), "set_buffers", "of running statistics");
    for (std::size_t i = 0; i + 1 < program_.phases(); ++i)
      program_.batch_norm(i).batch_norm->import_buffers(values);
  }

  std::vector<float> gradients() const override { return exported(arrays_.gradient); }

  std::vector<OptimizerState> optimizer_state() const override {
    std::vector<OptimizerState> state;
    for (std::size_t i = 0; i < arrays_.state.size(); ++i)
      state.push_back({state_names_[i], exported(arrays_.state[i])});
    return state;
  }

  std::int64_t step_count() const override { return steps_; }

  void set_optimizer_state(std::span<const OptimizerState> state, std::int64_t step_count) override {
    check_optimizer_state(state, options_.optimizer);
    for (const OptimizerState& array : state)
      check_count(array.values.size(), network_.parameter_count(), "set_optimizer_state", "parameters");
    for (std::size_t i = 0; i < arrays_.state.size(); ++i)
      import_array(state[i].values, arrays_.state[i], "set_optimizer_state");
    steps_ = step_count;
  }

 private:
  void check(const Batch& batch) const { check_batch(batch, network_, options_.batch_size, options_.loss); }

  void import_array(std::span<const float> values, AlignedBuffer& array, const char* caller) const {
    check_count(values.size(), network_.parameter_count(), caller, "parameters");
    program_.import_parameters(values, array.data());
  }

  std::vector<float> exported(const AlignedBuffer& array) const {
    std::vector<float> values(network_.parameter_count());
    program_.export_parameters(array.data(), values);
    return values;
  }

  // Reduces the partial gradients and updates the parameters. The parameter array is cut into parts of 64
  // cache lines, whatever the number of threads, because the clipping norm is a sum over parts. Without
  // clipping, a part is updated while its gradient is still in the cache.
  void step(double learning_rate) {
    ++steps_;
    const std::size_t cache_lines = program_.parameter_floats() / kLanes;
    constexpr std::size_t kCacheLinesPerPart = 64;
    const std::size_t parts = (cache_lines + kCacheLinesPerPart - 1) / kCacheLinesPerPart;
    const auto begin_of = [&](std::size_t part) { return part_begin(cache_lines, parts, part) * kLanes; };
    norms_.resize(parts);
    pool_.run(parts, [&](std::size_t part, std::size_t) noexcept {
      const std::size_t begin = begin_of(part), count = begin_of(part + 1) - begin;
      runner_.gradient().total(begin, count, arrays_.gradient.data() + begin);
      if (options_.clip_norm > 0) {
        norms_[part] = sum_of_squares(arrays_.gradient.data() + begin, count);
      } else {
        update(begin, count, learning_rate);
      }
    });
    if (options_.clip_norm > 0) {
      double squares = 0;
      for (const double part : norms_) squares += part;
      // The same factor as torch.nn.utils.clip_grad_norm_.
      const double factor = std::min(1.0, options_.clip_norm / (std::sqrt(squares) + 1e-6));
      pool_.run(parts, [&](std::size_t part, std::size_t) noexcept {
        const std::size_t begin = begin_of(part), count = begin_of(part + 1) - begin;
        float* gradient = arrays_.gradient.data() + begin;
        if (factor < 1) {
          for (std::size_t i = 0; i < count; ++i) gradient[i] *= static_cast<float>(factor);
        }
        update(begin, count, learning_rate);
      });
    }
    pool_.run(program_.prepare_parts(), [&](std::size_t part, std::size_t) noexcept {
      program_.prepare(arrays_.parameters.data(), part);
    });
  }

  void update(std::size_t begin, std::size_t count, double learning_rate) noexcept {
    cpu::OptimizerStep step{.learning_rate = learning_rate,
                            .number = steps_,
                            .floats = count,
                            .gradient = arrays_.gradient.data() + begin,
                            .past_caches = pool_.size() > 1,
                            .parameters = arrays_.parameters.data() + begin};
    for (std::size_t i = 0; i < arrays_.state.size(); ++i) step.state[i] = arrays_.state[i].data() + begin;
    cpu::optimizer_step(options_.optimizer, step);
  }

  const Network network_;
  EngineOptions options_;
  cpu::Program program_;
  cpu::ThreadPool pool_;
  cpu::BatchRunner runner_;
  const bool has_group_;
  ParameterArrays arrays_;
  std::vector<std::string> state_names_;
  std::vector<double> norms_;  // squared norm of each part of the gradient; see step()
  std::int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_cpu_engine(const Network& network, const EngineOptions& options) {
  return std::make_unique<CpuEngine>(network, options, nullptr);
}

std::unique_ptr<ReplicaEngine> make_cpu_replica(const Network& network, const EngineOptions& options,
                                                Communicator& group) {
  std::unique_ptr<ReplicaEngine> replica;
  on_all_ranks(group, [&] { replica = std::make_unique<CpuEngine>(network, options, &group); });
  return replica;
}

std::size_t cpu_engine_memory(const Network& network, const EngineOptions& options) {
  const auto devices = static_cast<std::size_t>(std::max(options.parallel.data, 1));
  const auto threads = std::max<std::size_t>(static_cast<std::size_t>(threads_of(options)) / devices, 1);
  std::size_t bytes = 0;
  for (std::size_t rank = 0; rank < devices; ++rank) {
    const cpu::AllocationCount count;
    const cpu::Program program(network, cpu::block_count(options.batch_size));
    const cpu::RunnerMemory runner(network, options, program, threads, {rank, devices});
    const ParameterArrays arrays(program, options.optimizer);
    bytes += count.bytes();
  }
  return bytes;
}

}  // namespace sweep
