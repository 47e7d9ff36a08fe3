#include "core/kernels/cuda/cuda_engine.h"

#include <algorithm>

#include "core/engine/engine_checks.h"
#include "core/kernels/cuda/device_runner.h"
#include "core/kernels/cuda/kernels/value_counter.h"

namespace sweep {
namespace {

using cuda::Array;
using cuda::Task;

class CudaEngine final : public Engine {
 public:
  CudaEngine(const Network& network, const EngineOptions& options)
      : network_(network),
        options_(options),
        runner_(network_,
                cuda::program_options(options, options.device.index, {.turns = cuda::turns_of(options)}),
                options.batch_size, options.placement) {
    check_loss(options.loss, network_);
  }

  ~CudaEngine() override = default;
  CudaEngine(const CudaEngine&) = delete;
  CudaEngine& operator=(const CudaEngine&) = delete;

  Device device() const override { return options_.device; }

  std::optional<Placement> prepare(const Samples& training, std::span<const Samples> evaluation) override {
    runner_.flush();
    const bool resident = prepare(Task::kTrain, training);
    for (const Samples& samples : evaluation) prepare(Task::kEvaluate, samples);
    runner_.stream().wait();
    return resident ? Placement::kDevice : Placement::kHost;
  }

  void train(const Batch& batch, double learning_rate) override {
    check(batch, options_.augment.steps);
    if (batch.size() == 0) return;
    ++steps_;
    runner_.add(batch.augment.steps.empty() ? Task::kTrain : Task::kAugmentAndTrain, batch,
                cuda::training_input(batch, options_, learning_rate, steps_));
  }

  void set_momentum(double momentum) override {
    options_.optimizer = changed_momentum(options_.optimizer, momentum);
  }

  void evaluate(const Batch& batch) override {
    check(batch);
    runner_.evaluate(batch);
  }

  void predict(const Batch& batch, std::span<float> outputs) override {
    run_and_download(Task::kPredict, batch, outputs);
  }

  void evaluate_and_predict(const Batch& batch, std::span<float> outputs) override {
    run_and_download(Task::kEvaluate, batch, outputs);
  }

  std::string kernels() const override { return runner_.program().libraries().record(options_.device.index); }

  Totals take_totals() override { return cuda::sum_of(runner_.take_totals()); }

  std::optional<double> take_device_seconds() override {
    runner_.flush();
    return runner_.clock().take();
  }

  // Reading totals waits for the device, some ten microseconds. Every 128 steps that costs nothing and still
  // shows progress.
  std::int64_t batches_between_totals() const override { return 128; }

  std::vector<float> parameters() const override { return runner_.download(runner_.program().parameters()); }
  void set_parameters(std::span<const float> values) override {
    runner_.upload(values, runner_.program().parameters(), "set_parameters", "parameters");
  }

  std::vector<float> buffers() const override { return runner_.download(runner_.program().buffers()); }
  void set_buffers(std::span<const float> values) override {
    runner_.upload(values, runner_.program().buffers(), "set_buffers", "of running statistics");
  }

  std::vector<float> gradients() const override { return runner_.download(runner_.program().gradient()); }

  std::optional<ParameterCounts> count_parameters(std::span<const double> limits) const override {
    runner_.flush();
    if (!counter_ || !std::ranges::equal(counter_->limits(), limits)) {
      std::vector<cuda::CountedArray> arrays;
      for (const Array<float>* all : {&runner_.program().parameters(), &runner_.program().gradient()}) {
        for (const Parameter& parameter : network_.parameters())
          arrays.push_back({all->data() + parameter.offset, static_cast<int>(parameter.count)});
      }
      counter_.emplace(runner_.stream(), arrays, limits);
    }
    const std::vector<ValueCounts> counts = counter_->count(runner_.stream());
    const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
    return ParameterCounts{{counts.begin(), middle}, {middle, counts.end()}};
  }

  std::vector<OptimizerState> optimizer_state() const override {
    return runner_.optimizer_state(options_.optimizer);
  }

  std::int64_t step_count() const override { return steps_; }

  void set_optimizer_state(std::span<const OptimizerState> state, std::int64_t step_count) override {
    runner_.set_optimizer_state(state, options_.optimizer);
    steps_ = step_count;
  }

 private:
  void check(const Batch& batch, std::span<const AugmentStep> augment = {}) const {
    check_batch(batch, network_, options_.batch_size, options_.loss, augment);
  }

  // One step that leaves the network's outputs where they can be copied from.
  void run_and_download(Task task, const Batch& batch, std::span<float> outputs) {
    check(batch);
    check_outputs(outputs, batch, network_);
    runner_.run_and_download(task, batch, outputs);
  }

  // Makes the samples' set resident and records the graphs that an epoch over it will launch, so that no step
  // of the training pays for it. Returns whether the set is resident.
  bool prepare(Task task, const Samples& samples) {
    const bool resident = runner_.feed().make_resident(runner_.stream(), samples.set);
    // Samples of the host come as its loader has changed them.
    if (resident && task == Task::kTrain && !options_.augment.steps.empty()) {
      task = Task::kAugmentAndTrain;
      runner_.program().allocate_augmented(runner_.stream(), value_bytes(samples.set->samples));
    }
    if (!resident && samples.set != nullptr) runner_.feed().allocate_staging(runner_.stream(), *samples.set);
    // An evaluation goes in pieces as long as what is trained at once.
    const std::size_t size =
        task == Task::kEvaluate ? runner_.largest_pass() : std::size_t{options_.batch_size};
    const auto whole = static_cast<std::int64_t>(samples.count / size);
    const int largest = static_cast<int>(size), last = static_cast<int>(samples.count % size);
    const auto record = [&](std::int64_t steps, int images) {
      if (steps > 0 && images > 0)
        runner_.program().record(runner_.stream(), task, static_cast<int>(steps), images,
                                 runner_.feed().inputs());
    };
    if (resident) {
      if (whole >= runner_.feed().max_steps()) record(runner_.feed().max_steps(), largest);
      record(whole % runner_.feed().max_steps(), largest);
    } else if (whole > 0) {
      record(1, largest);
    }
    record(1, last);
    return resident;
  }

  const Network network_;
  EngineOptions options_;  // only the momentum changes
  // Mutable because reading results first runs the collected steps.
  mutable cuda::DeviceRunner runner_;
  mutable std::optional<cuda::ValueCounter> counter_;  // made by the first count_parameters()
  std::int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_cuda_engine(const Network& network, const EngineOptions& options) {
  return std::make_unique<CudaEngine>(network, options);
}

}  // namespace sweep
