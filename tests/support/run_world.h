// Replacements for clock, terminal, data and engine, with which a sweep runs in milliseconds.
#pragma once

#include <nlohmann/json.hpp>

#include "core/data/dataset.h"
#include "core/engine/engine.h"
#include "runmanager/config/run_config.h"
#include "runmanager/sweep/sweep_runner.h"
#include "tests/support/event_files.h"

namespace sweep {

using Json = nlohmann::ordered_json;

/// The behaviour of the fake engines, and a record of their calls. Shared by all engines of a World.
struct FakeTraining {
  /// Totals of one training batch; `step` counts the engine's batches from 0.
  std::function<Totals(const Batch&, std::int64_t step)> on_train;
  std::int64_t breaks_weights_in_step = -1;  // this batch makes the weights infinite, but not its loss
  double evaluation_loss = 0.25;             // of every sample
  std::size_t engines = 0;                   // made so far
  std::size_t batches = 0;                   // trained by all of them
  std::size_t passes = 0;                    // batches that were evaluated, predicted, or both at once
  std::vector<float> first_parameters;       // of the last engine, as they were set
  EngineOptions options;                     // of the last engine
  std::string kernels;                       // of all engines
  std::vector<double> learning_rates;        // of every trained batch
  std::vector<double> momenta;               // as they were set
};

/// Each training batch adds 1 to every parameter, has loss 0.5 and gets half of the samples right.
/// Predictions are class 0.
class FakeEngine : public Engine {
 public:
  FakeEngine(const Network& network, FakeTraining& training);
  Device device() const override { return training_.options.device; }
  void train(const Batch& batch, const StepValues& values) override;
  void evaluate(const Batch& batch, std::span<float> outputs, bool counts) override;
  Totals take_totals() override;
  std::vector<float> array(const EngineArray& which) const override;
  void set_array(const EngineArray& which, std::span<const float> values) override;
  std::vector<std::string> optimizer_arrays() const override { return {"momentum"}; }
  std::string kernels() const override { return training_.kernels; }
  std::int64_t step_count() const override { return steps_; }
  void set_step_count(std::int64_t steps) override { steps_ = steps; }

 private:
  FakeTraining& training_;
  std::size_t classes_;
  std::vector<float> parameters_;
  Totals totals_;
  std::int64_t steps_ = 0;
};

/// 40 samples for training, 10 for validation and 20 for testing: 4x4 grey images of 3 classes called a, b/c
/// and d.
Dataset small_dataset();

/// flatten and one linear layer, from 4x4 images to 3 classes.
NetworkSpec small_network();

/// A run of 2 epochs of 4 batches on the CPU.
RunConfig small_run(std::size_t index, double lr, const std::string& device = "cpu");

/// Two such runs, lr 0.5 and 0.25, or the first alone.
Sweep small_sweep(std::size_t runs = 2);
inline constexpr const char *kFirst = "lr=0.5,device=cpu", *kSecond = "lr=0.25,device=cpu";  // its runs

/// Everything that run_sweep() uses from outside. The device "cuda" is unavailable: "there is none here".
struct World {
  TemporaryDirectory directory;
  FakeTraining training;
  double seconds = 1000;  // the clock's time; each call adds `tick`
  double tick = 0.001;
  int signal = 0;
  std::size_t data_loads = 0;
  std::string terminal_output;
  std::ostringstream out;
  RunnerOptions options;
  SweepEnvironment environment();

  World() { options.logdir = directory.path() / "runs"; }
  SweepOutcome run(const Sweep& sweep) { return run_sweep(sweep, options, environment()); }
  /// The same until so many batches are trained, when it is stopped by SIGTERM. Then makes `training` anew.
  SweepOutcome run_batches(std::size_t batches, const Sweep& sweep);
  std::filesystem::path path(const std::string& name) const { return options.logdir / "small" / name; }
};

/// The status of every run, as results.json names it.
std::vector<std::string> statuses(const std::vector<RunRecord>& runs);
inline std::vector<std::string> statuses(const SweepOutcome& outcome) { return statuses(outcome.runs); }

/// The last value of every scalar in the events, by tag.
std::map<std::string, double> last_scalars(const std::vector<proto::Event>& events);

/// The lines of a text, without line breaks.
std::vector<std::string> lines_of(const std::string& text);

/// Parses CSV (RFC 4180) into rows of fields. Independent of the program's own code, so that a mistake there
/// is found.
std::vector<std::vector<std::string>> parse_csv(const std::string& text);

}  // namespace sweep
