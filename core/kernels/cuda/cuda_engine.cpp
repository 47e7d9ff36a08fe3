#include "core/kernels/cuda/cuda_engine.h"

#include <algorithm>

#include "core/kernels/cuda/kernels/value_counter.h"
#include "core/kernels/cuda/network_engine.h"
#include "core/kernels/cuda/network_in_stages.h"

namespace sweep {
namespace {

using cuda::Array;
using cuda::Task;

class CudaEngine final : public cuda::NetworkEngine<cuda::DeviceRunner> {
 public:
  CudaEngine(const Network& network, const EngineOptions& options)
      : NetworkEngine(
            network, options,
            cuda::program_options(options, options.device.index, {.turns = cuda::turns_of(options)}),
            options.batch_size, options.placement) {}

  std::optional<Placement> prepare(const Subset& training, std::span<const Subset> evaluation) override {
    trained_.flush();
    const bool resident = prepare(Task::kTrain, training);
    for (const Subset& samples : evaluation) prepare(Task::kEvaluate, samples);
    trained_.stream().wait();
    return resident ? Placement::kDevice : Placement::kHost;
  }

  void train(const Batch& batch, const StepValues& values) override {
    check(batch, options_.augment.steps);
    if (batch.size() == 0) return;
    trained_.add(batch.augment.steps.empty() ? Task::kTrain : Task::kAugmentAndTrain, batch,
                 next_step(batch, values));
  }

  std::optional<double> take_device_seconds() override {
    trained_.flush();
    return trained_.clock().take();
  }

  std::optional<ParameterCounts> parameter_histograms(std::span<const double> limits) const override {
    trained_.flush();
    if (!counter_ || !std::ranges::equal(counter_->limits(), limits)) {
      std::vector<cuda::CountedArray> arrays;
      for (const auto kind : {EngineArray::kParameters, EngineArray::kGradient}) {
        for (const Parameter& parameter : network_.parameters())
          arrays.push_back({trained_.program().array({kind}).data() + parameter.offset,
                            static_cast<int>(parameter.count)});
      }
      counter_.emplace(trained_.stream(), arrays, limits);
    }
    const std::vector<HistogramCounts> counts = counter_->count(trained_.stream());
    const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(counts.size() / 2);
    return ParameterCounts{{counts.begin(), middle}, {middle, counts.end()}};
  }

 private:
  // Makes the samples' set resident and records the graphs that an epoch over it will launch, so that no step
  // of the training pays for it. Returns whether the set is resident.
  bool prepare(Task task, const Subset& samples) {
    const bool resident = trained_.feed().make_resident(trained_.stream(), samples.set);
    // Samples of the host come as its loader has changed them.
    if (resident && task == Task::kTrain && !options_.augment.steps.empty()) {
      task = Task::kAugmentAndTrain;
      trained_.program().allocate_augmented(trained_.stream(), value_bytes(samples.set->samples));
    }
    if (!resident && samples.set != nullptr)
      trained_.feed().allocate_staging(trained_.stream(), *samples.set);
    // A pass of an evaluation is as long as one of a training.
    const std::size_t size =
        task == Task::kEvaluate ? trained_.largest_pass() : std::size_t{options_.batch_size};
    const auto whole = static_cast<std::int64_t>(samples.count / size);
    const int largest = static_cast<int>(size), last = static_cast<int>(samples.count % size);
    const auto record = [&](std::int64_t steps, int images) {
      if (steps > 0 && images > 0)
        trained_.program().record(trained_.stream(), task, static_cast<int>(steps), images,
                                  trained_.feed().inputs());
    };
    if (resident) {
      if (whole >= trained_.feed().max_steps()) record(trained_.feed().max_steps(), largest);
      record(whole % trained_.feed().max_steps(), largest);
    } else if (whole > 0) {
      record(1, largest);
    }
    record(1, last);
    return resident;
  }

  mutable std::optional<cuda::ValueCounter> counter_;  // made by the first parameter_histograms()
};

// The engine of a network whose layers are on several devices, which have each batch for themselves.
class StagedCudaEngine final : public cuda::NetworkEngine<cuda::NetworkInStages> {
 public:
  StagedCudaEngine(const Network& network, const EngineOptions& options, const std::vector<Stage>& stages)
      : NetworkEngine(network, options, options, stages, cuda::BatchShares{.turns = cuda::turns_of(options)},
                      options.batch_size) {}

  void train(const Batch& batch, const StepValues& values) override {
    check(batch);
    if (batch.size() == 0) return;
    trained_.train(batch, batch.size(), next_step(batch, values));
  }
};

}  // namespace

std::unique_ptr<Engine> make_cuda_engine(const Network& network, const EngineOptions& options) {
  return std::make_unique<CudaEngine>(network, options);
}

std::unique_ptr<Engine> make_staged_cuda_engine(const Network& network, const EngineOptions& options,
                                                const std::vector<Stage>& stages) {
  return std::make_unique<StagedCudaEngine>(network, options, stages);
}

}  // namespace sweep
