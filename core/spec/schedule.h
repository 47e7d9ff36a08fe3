// Schedules of the learning rate by PyTorch's arguments and defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/spec/arguments.h"
#include "core/spec/optimizer.h"

namespace sweep {

/// A schedule as the sweep file describes it.
struct ScheduleSpec {
  std::string type = "constant";  // a name from schedule_types()
  Arguments arguments = {};       // what was given, without defaults
  std::vector<ScheduleSpec> then =
      {};  // of warmup: at most one, constant, step or cosine, that comes after it
};

/// Every schedule, with its arguments. Those that count epochs change the rate between epochs; one_cycle
/// changes it with every step.
std::span<const NamedType> schedule_types();

/// Whether `then` may follow a warmup.
bool can_follow_warmup(std::string_view type);

/// lr.
struct ConstantSchedule {};

/// torch.optim.lr_scheduler.StepLR: lr · gamma^floor(epoch / step_size).
struct StepSchedule {
  std::int64_t step_size = 1;  // epochs
  double gamma = 0.1;
};

/// CosineAnnealingLR: eta_min + (lr − eta_min) · (1 + cos(π · epoch / T_max)) / 2.
struct CosineSchedule {
  std::optional<std::int64_t> t_max;  // epochs; none: all epochs of the training, or those after the warmup
  double eta_min = 0;
};

/// OneCycleLR over all steps of the training, with max_lr = lr: from lr / div_factor up to lr during the
/// first pct_start of the steps, and down to lr / div_factor / final_div_factor (with three_phase first back
/// to lr / div_factor in as many steps). Momentum goes the other way, between max_momentum and base_momentum.
struct OneCycleSchedule {
  double pct_start = 0.3;
  bool linear = false;  // straight lines instead of half cosines
  bool cycle_momentum = true;
  double base_momentum = 0.85, max_momentum = 0.95;
  double div_factor = 25, final_div_factor = 1e4;
  bool three_phase = false;
};

/// LinearLR over epochs: from lr · start_factor to lr · end_factor in total_iters epochs; then stays, or goes
/// on with `then`, whose epochs count from there (SequentialLR).
struct WarmupSchedule {
  double start_factor = 1.0 / 3, end_factor = 1;
  std::int64_t total_iters = 5;
  std::optional<std::variant<ConstantSchedule, StepSchedule, CosineSchedule>> then;
};

using ScheduleOptions =
    std::variant<ConstantSchedule, StepSchedule, CosineSchedule, OneCycleSchedule, WarmupSchedule>;

/// Fills in defaults and checks. Throws ConfigError for an unknown type or argument.
ScheduleOptions resolve_schedule(const ScheduleSpec& spec);

/// A step of a training.
struct TrainingPoint {
  int epoch = 0;          // from 0
  std::int64_t step = 0;  // in the epoch, from 0
  int epochs = 1;         // of the training
  std::int64_t steps_per_epoch = 1;
};

/// What an optimizer step is taken with.
struct StepValues {
  double learning_rate = 0;
  std::optional<double> momentum = {};  // see with_momentum(); none: the optimizer's own
};

/// A function of its arguments alone, so a training that goes on in the middle needs no other state.
/// `learning_rate` is the training's own.
StepValues values_at(const ScheduleOptions& schedule, double learning_rate, const TrainingPoint& point);

/// The optimizer that a training with this schedule is made with: with the momentum of its first step if the
/// schedule moves it. PyTorch's OneCycleLR, too, gives momentum to an sgd or rmsprop without.
OptimizerOptions scheduled_optimizer(const OptimizerOptions& optimizer, const ScheduleOptions& schedule);

}  // namespace sweep
