// Learning rate schedules with PyTorch's arguments and defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "core/network/arguments.h"
#include "core/network/optimizer.h"

namespace sweep {

/// Every schedule, with its arguments, in the order of ScheduleOptions. one_cycle changes the learning rate
/// after every step, the others after every epoch. The first is the default. Thread-safe, as all of this
/// header.
std::span<const NamedType> schedule_types();

/// Those that may follow a warmup.
std::span<const NamedType> schedule_types_after_warmup();

/// The learning rate stays lr.
struct ConstantSchedule {};

/// torch.optim.lr_scheduler.StepLR: lr · gamma^floor(epoch / step_size).
struct StepSchedule {
  std::int64_t step_size = 1;  // epochs, >= 1
  double gamma = 0.1;
};

/// torch.optim.lr_scheduler.CosineAnnealingLR: eta_min + (lr − eta_min) · (1 + cos(π · epoch / T_max)) / 2.
struct CosineSchedule {
  std::optional<std::int64_t> t_max;  // epochs, >= 1; none: all of the training, or all after the warmup
  double eta_min = 0;
};

/// torch.optim.lr_scheduler.OneCycleLR over all steps of the training, with max_lr = lr: rises from
/// lr / div_factor to lr during the first pct_start of the steps, then falls to
/// lr / div_factor / final_div_factor; with three_phase, first back to lr / div_factor in as many steps.
/// Momentum moves in the opposite direction, between max_momentum and base_momentum.
struct OneCycleSchedule {
  double pct_start = 0.3;
  bool linear = false;  // anneal_strategy "linear" instead of "cos"
  bool cycle_momentum = true;
  double base_momentum = 0.85, max_momentum = 0.95;
  double div_factor = 25, final_div_factor = 1e4;
  bool three_phase = false;
};

/// torch.optim.lr_scheduler.LinearLR over epochs: from lr · start_factor to lr · end_factor in total_iters
/// epochs. Afterwards the rate stays, or `then` continues with epoch 0 (SequentialLR).
struct WarmupSchedule {
  double start_factor = 1.0 / 3, end_factor = 1;
  std::int64_t total_iters = 5;  // epochs, >= 1
  std::optional<std::variant<ConstantSchedule, StepSchedule, CosineSchedule>> then;
};

using ScheduleOptions =
    std::variant<ConstantSchedule, StepSchedule, CosineSchedule, OneCycleSchedule, WarmupSchedule>;

/// Returns the schedule of a type from schedule_types(), with defaults for what is not `given`. `then`: what
/// follows a warmup, if it is not null. Throws ConfigError for an unknown type or argument, one that is out
/// of range, or a `then` that is not possible.
ScheduleOptions make_schedule(std::string_view type, const Arguments& given = {},
                              const ScheduleOptions* then = nullptr);

/// The position of a step in a training.
struct TrainingPoint {
  int epoch = 0;          // from 0
  std::int64_t step = 0;  // in the epoch, from 0
  int epochs = 1;         // of the training
  std::int64_t steps_per_epoch = 1;
};

/// The values of one optimizer step, which a schedule sets.
struct StepValues {
  StepValues(double rate) : learning_rate(rate) {}
  StepValues(double rate, double changed) : learning_rate(rate), momentum(changed) {}

  double learning_rate;            // >= 0
  std::optional<double> momentum;  // in (0, 1), see with_momentum(); none: the optimizer keeps its own
};

/// Returns the values for one step. A pure function, so a resumed training needs no state of the schedule.
/// `learning_rate` is the one of the training's configuration.
StepValues values_at(const ScheduleOptions& schedule, double learning_rate, const TrainingPoint& point);

/// Returns the optimizer to create an engine with: if the schedule changes the momentum, with the momentum of
/// the first step. Like PyTorch's OneCycleLR, this gives momentum to an sgd or rmsprop that had none.
OptimizerOptions scheduled_optimizer(const OptimizerOptions& optimizer, const ScheduleOptions& schedule);

}  // namespace sweep
