// What the engines on CUDA devices have in common, whatever they let train the network.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/engine_checks.h"
#include "core/kernels/cuda/device_runner.h"

namespace sweep::cuda {

/// Trained: DeviceRunner or NetworkInStages. Base: Engine, or a class derived from it.
template <class Trained, class Base = Engine>
class NetworkEngine : public Base {
 public:
  Device device() const override { return options_.device; }

  void evaluate(const Batch& batch, std::span<float> outputs, bool counts) override {
    check(batch);
    check_outputs(outputs, batch, network_, counts);
    run(counts ? Task::kEvaluate : Task::kPredict, batch, outputs);
  }

  std::string kernels() const override { return kernels_text(trained_.libraries(), device().index); }
  Totals take_totals() override { return sum_of(trained_.take_totals()); }

  // Reading totals waits for the device, some ten microseconds. Every 128 steps that costs nothing and still
  // shows progress.
  std::int64_t batches_between_totals() const override { return 128; }

  std::vector<float> array(const EngineArray& which) const override { return settled().array(which); }
  void set_array(const EngineArray& which, std::span<const float> values) override {
    check_array(which, values, network_);
    settled().set_array(which, values);
  }
  std::vector<std::string> optimizer_arrays() const override { return state_names(options_.optimizer); }
  std::int64_t step_count() const override { return steps_; }
  void set_step_count(std::int64_t steps) override { steps_ = steps; }

 protected:
  /// `arguments`: those of Trained's constructor after the network.
  template <class... Arguments>
  NetworkEngine(const Network& network, const EngineOptions& options, Arguments&&... arguments)
      : network_(network), options_(options), trained_(network_, std::forward<Arguments>(arguments)...) {}

  void check(const Batch& batch, std::span<const AugmentStep> augment = {}) const {
    check_batch(batch, network_, options_.batch_size, options_.loss, augment);
  }

  /// Begins the next training step. Returns what the kernels have to know of it.
  StepInput next_step(const Batch& batch, const StepValues& values) {
    options_.optimizer = optimizer_of_step(options_.optimizer, values);
    return training_input(batch, options_, values.learning_rate, ++steps_);
  }

  /// What is trained, when its arrays may be read and changed.
  virtual Trained& settled() const { return trained_; }
  /// Calls `work`, an evaluation.
  virtual void evaluating(const std::function<void()>& work) { work(); }

  const Network network_;
  EngineOptions options_;  // only the momentum changes
  // Mutable because reading results first waits for the devices.
  mutable Trained trained_;
  std::int64_t steps_ = 0;

 private:
  // In passes; copies the network's outputs to `outputs` unless it is empty.
  void run(Task task, const Batch& batch, std::span<float> outputs) {
    if (batch.size() == 0) return;
    evaluating([&] {
      // A batch to predict may lack targets.
      const StepInput input = task == Task::kPredict ? StepInput{} : step_input(batch, options_.loss, false);
      const std::size_t count = outputs.size() / batch.size();  // of a sample
      for_each_pass(batch, trained_.largest_pass(), [&](const Batch& rows, std::size_t begin) {
        trained_.evaluate(task, rows, input);
        if (count > 0) trained_.download_outputs(outputs.subspan(begin * count, rows.size() * count));
      });
    });
  }
};

}  // namespace sweep::cuda
