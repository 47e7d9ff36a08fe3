// The engine of a network whose layers are on several CUDA devices, which have each batch for themselves.
#include "core/engine/engine_checks.h"
#include "core/kernels/cuda/cuda_engine.h"
#include "core/kernels/cuda/network_in_stages.h"

namespace sweep {
namespace {

using cuda::Task;

class StagedCudaEngine final : public Engine {
 public:
  StagedCudaEngine(const Network& network, const EngineOptions& options, const std::vector<Stage>& stages)
      : network_(network),
        options_(options),
        staged_(network, options, stages, {.turns = cuda::turns_of(options)}, options.batch_size) {
    check_loss(options.loss, network_);
  }

  Device device() const override { return options_.device; }

  void train(const Batch& batch, double learning_rate) override {
    check(batch);
    if (batch.size() == 0) return;
    ++steps_;
    staged_.train(batch, batch.size(), cuda::training_input(batch, options_, learning_rate, steps_));
  }

  void set_momentum(double momentum) override {
    options_.optimizer = changed_momentum(options_.optimizer, momentum);
  }

  void evaluate(const Batch& batch) override {
    check(batch);
    staged_.evaluate(batch);
  }

  void predict(const Batch& batch, std::span<float> outputs) override {
    run_and_download(Task::kPredict, batch, outputs);
  }

  void evaluate_and_predict(const Batch& batch, std::span<float> outputs) override {
    run_and_download(Task::kEvaluate, batch, outputs);
  }

  std::string kernels() const override { return staged_.libraries().record(options_.device.index); }
  Totals take_totals() override { return cuda::sum_of(staged_.take_totals()); }
  std::int64_t batches_between_totals() const override { return 128; }  // as an engine on one device

  std::vector<float> parameters() const override { return staged_.parameters(); }
  void set_parameters(std::span<const float> values) override { staged_.set_parameters(values); }
  std::vector<float> buffers() const override { return staged_.buffers(); }
  void set_buffers(std::span<const float> values) override { staged_.set_buffers(values); }
  std::vector<float> gradients() const override { return staged_.gradients(); }

  std::vector<OptimizerState> optimizer_state() const override { return staged_.optimizer_state(); }
  std::int64_t step_count() const override { return steps_; }
  void set_optimizer_state(std::span<const OptimizerState> state, std::int64_t step_count) override {
    staged_.set_optimizer_state(state);
    steps_ = step_count;
  }

 private:
  void check(const Batch& batch) const { check_batch(batch, network_, options_.batch_size, options_.loss); }

  void run_and_download(Task task, const Batch& batch, std::span<float> outputs) {
    check(batch);
    check_outputs(outputs, batch, network_);
    staged_.run_and_download(task, batch, outputs);
  }

  const Network network_;
  EngineOptions options_;  // only the momentum changes
  // Mutable because reading results waits for the devices.
  mutable cuda::NetworkInStages staged_;
  std::int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_staged_cuda_engine(const Network& network, const EngineOptions& options,
                                                const std::vector<Stage>& stages) {
  return std::make_unique<StagedCudaEngine>(network, options, stages);
}

}  // namespace sweep
