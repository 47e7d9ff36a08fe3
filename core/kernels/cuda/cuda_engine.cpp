#include "core/kernels/cuda/cuda_engine.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/engine/engine_checks.h"
#include "core/kernels/cuda/batch_feed.h"
#include "core/kernels/cuda/kernels/value_counter.h"
#include "core/kernels/cuda/program.h"
#include "core/kernels/cuda/runtime/device_clock.h"

namespace sweep {
namespace {

using cuda::Array;
using cuda::BatchFeed;
using cuda::Task;

int checked_batch_size(std::size_t batch_size) {
  if (batch_size > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw ConfigError("batch_size " + std::to_string(batch_size) + " is too large for the CUDA engine");
  }
  return static_cast<int>(batch_size);
}

// A member that comes before the members that need the current device.
struct DeviceSelection {
  explicit DeviceSelection(const Device& device) { cuda::use_device(device.index); }
};

class CudaEngine final : public Engine {
 public:
  CudaEngine(const Network& network, const EngineOptions& options)
      : device_selection_(options.device),
        network_(network),
        options_(options),
        program_(stream_, network_,
                 {.batch_size = checked_batch_size(options.batch_size),
                  .optimizer = options.optimizer,
                  .transform = options.transform,
                  .loss = options.loss,
                  .clip_norm = options.clip_norm,
                  .seed = options.seed,
                  .device = options.device.index,
                  .kernels = options.kernels,
                  .deterministic = options.deterministic,
                  .augment = options.augment}),
        feed_(options.batch_size, element_count(network.input()), options.placement,
              !options.augment.steps.empty()) {
    check_loss(options.loss, network_);
  }

  ~CudaEngine() override = default;
  CudaEngine(const CudaEngine&) = delete;
  CudaEngine& operator=(const CudaEngine&) = delete;

  Device device() const override { return options_.device; }

  std::optional<Placement> prepare(const Samples& training, std::span<const Samples> evaluation) override {
    select_device();
    flush();
    const bool resident = prepare(Task::kTrain, training);
    for (const Samples& samples : evaluation) prepare(Task::kEvaluate, samples);
    stream_.wait();
    return resident ? Placement::kDevice : Placement::kHost;
  }

  void train(const Batch& batch, double learning_rate) override {
    check(batch, options_.augment.steps);
    if (batch.size() == 0) return;
    ++steps_;
    add(batch.augment.steps.empty() ? Task::kTrain : Task::kAugmentAndTrain, batch,
        {.step = static_cast<std::uint32_t>(steps_ - 1),
         .factors = cuda::step_factors(options_.optimizer, learning_rate, steps_)});
  }

  void set_momentum(double momentum) override {
    options_.optimizer = changed_momentum(options_.optimizer, momentum);
  }

  void evaluate(const Batch& batch) override {
    check(batch);
    if (batch.size() > 0) add(Task::kEvaluate, batch, {});
  }

  void predict(const Batch& batch, std::span<float> outputs) override {
    run_and_download(Task::kPredict, batch, outputs);
  }

  void evaluate_and_predict(const Batch& batch, std::span<float> outputs) override {
    run_and_download(Task::kEvaluate, batch, outputs);
  }

  std::string kernels() const override { return program_.kernels(); }

  Totals take_totals() override {
    select_device();
    flush();
    std::vector<cuda::DeviceTotals> parts(program_.totals().size());
    stream_.download(parts.data(), program_.totals().data(), parts.size() * sizeof parts[0]);
    stream_.clear(program_.totals().data(), parts.size() * sizeof parts[0]);
    Totals totals{};
    for (const cuda::DeviceTotals& part : parts) {
      totals += {.loss = part.loss,
                 .correct = part.correct,
                 .samples = part.samples,
                 .ranked = part.ranked,
                 .in_top = part.in_top,
                 .numbers = part.numbers,
                 .absolute_error = part.absolute_error,
                 .squared_error = part.squared_error};
    }
    return totals;
  }

  std::optional<double> take_device_seconds() override {
    select_device();
    flush();
    return clock_.take();
  }

  // Reading totals waits for the device, some ten microseconds. Every 128 steps that costs nothing and still
  // shows progress.
  std::int64_t batches_between_totals() const override { return 128; }

  std::vector<float> parameters() const override { return download(program_.parameters()); }
  void set_parameters(std::span<const float> values) override {
    upload(values, program_.parameters(), "set_parameters", "parameters");
  }

  std::vector<float> buffers() const override { return download(program_.buffers()); }
  void set_buffers(std::span<const float> values) override {
    upload(values, program_.buffers(), "set_buffers", "of running statistics");
  }

  std::vector<float> gradients() const override { return download(program_.gradient()); }

  std::optional<ParameterCounts> count_parameters(std::span<const double> limits) const override {
    select_device();
    flush();
    if (!counter_ || !std::ranges::equal(counter_->limits(), limits)) {
      std::vector<cuda::CountedArray> arrays;
      for (const Array<float>* all : {&program_.parameters(), &program_.gradient()}) {
        for (const Parameter& parameter : network_.parameters())
          arrays.push_back({all->data() + parameter.offset, static_cast<int>(parameter.count)});
      }
      counter_.emplace(stream_, arrays, limits);
    }
    const std::vector<ValueCounts> counts = counter_->count(stream_);
    const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
    return ParameterCounts{{counts.begin(), middle}, {middle, counts.end()}};
  }

  std::vector<OptimizerState> optimizer_state() const override {
    std::vector<OptimizerState> state;
    const std::vector<std::string> names = state_names(options_.optimizer);
    for (std::size_t i = 0; i < names.size(); ++i) state.push_back({names[i], download(program_.state()[i])});
    return state;
  }

  std::int64_t step_count() const override { return steps_; }

  void set_optimizer_state(std::span<const OptimizerState> state, std::int64_t step_count) override {
    check_optimizer_state(state, options_.optimizer);
    for (std::size_t i = 0; i < state.size(); ++i)
      upload(state[i].values, program_.state()[i], "set_optimizer_state", "parameters");
    steps_ = step_count;
  }

 private:
  void check(const Batch& batch, std::span<const AugmentStep> augment = {}) const {
    check_batch(batch, network_, options_.batch_size, options_.loss, augment);
  }

  void select_device() const { cuda::use_device(options_.device.index); }

  // One step that leaves the network's outputs where they can be copied from.
  void run_and_download(Task task, const Batch& batch, std::span<float> outputs) {
    check(batch);
    check_outputs(outputs, batch, network_);
    if (batch.size() == 0) return;
    add(task, batch, {});
    flush();
    stream_.download(outputs.data(), program_.outputs(), outputs.size_bytes());
  }

  // Collects steps and starts them together as long as they have the same task and batch size: one graph
  // launch for up to max_steps() of them.
  void add(Task task, const Batch& batch, const cuda::StepInput& input) {
    select_device();
    const int images = static_cast<int>(batch.size());
    // Making a new set resident may evict one that collected steps read.
    if (task != task_ || images != images_ || !feed_.is_resident(batch.set)) flush();
    if (task == Task::kAugmentAndTrain) program_.allocate_augmented(stream_, value_bytes(batch.samples));
    task_ = task;
    images_ = images;
    feed_.add(stream_, batch, input);
    if (feed_.steps() == feed_.max_steps() || !feed_.is_resident(batch.set)) flush();
  }

  // Makes the samples' set resident and records the graphs that an epoch over it will launch, so that no step
  // of the training pays for it. Returns whether the set is resident.
  bool prepare(Task task, const Samples& samples) {
    const bool resident = feed_.make_resident(stream_, samples.set);
    // Samples of the host come as its loader has changed them.
    if (resident && task == Task::kTrain && !options_.augment.steps.empty()) {
      task = Task::kAugmentAndTrain;
      program_.allocate_augmented(stream_, value_bytes(samples.set->samples));
    }
    if (!resident && samples.set != nullptr) feed_.allocate_staging(stream_, *samples.set);
    const auto whole = static_cast<std::int64_t>(samples.count / options_.batch_size);
    const int largest = static_cast<int>(options_.batch_size);
    const int last = static_cast<int>(samples.count % options_.batch_size);
    const auto record = [&](std::int64_t steps, int images) {
      if (steps > 0 && images > 0)
        program_.record(stream_, task, static_cast<int>(steps), images, feed_.inputs());
    };
    if (resident) {
      if (whole >= feed_.max_steps()) record(feed_.max_steps(), largest);
      record(whole % feed_.max_steps(), largest);
    } else if (whole > 0) {
      record(1, largest);
    }
    record(1, last);
    return resident;
  }

  // Puts the collected steps on the stream. Const because readers call it: the steps were requested before.
  void flush() const {
    const int steps = feed_.steps();
    if (steps == 0) return;
    clock_.start(stream_);
    const cuda::StepInputs inputs = feed_.upload(stream_);
    program_.run(stream_, task_, steps, images_, inputs);
    clock_.stop(stream_);
  }

  std::vector<float> download(const Array<float>& array) const {
    select_device();
    flush();
    std::vector<float> values(array.size());
    if (!values.empty()) stream_.download(values.data(), array.data(), values.size() * sizeof(float));
    return values;
  }

  void upload(std::span<const float> values, const Array<float>& array, const char* function,
              const char* contents) {
    check_count(values.size(), array.size(), function, contents);
    select_device();
    flush();
    if (!values.empty()) stream_.upload(array.data(), values.data(), values.size_bytes());
  }

  const DeviceSelection device_selection_;
  const Network network_;
  EngineOptions options_;  // only the momentum changes
  // Mutable because reading results first runs the collected steps.
  mutable cuda::Stream stream_;
  mutable cuda::Program program_;
  mutable BatchFeed feed_;
  mutable cuda::DeviceClock clock_;
  mutable std::optional<cuda::ValueCounter> counter_;  // made by the first count_parameters()
  Task task_ = Task::kTrain;                           // of the collected steps, as images_
  int images_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_cuda_engine(const Network& network, const EngineOptions& options) {
  return std::make_unique<CudaEngine>(network, options);
}

}  // namespace sweep
