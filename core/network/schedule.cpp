#include "core/network/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/base/error.h"

namespace sweep {
namespace {

using AfterWarmup = std::variant<ConstantSchedule, StepSchedule, CosineSchedule>;  // the first of all

ArgumentType exclusive(ArgumentType number) {
  number.exclusive = true;
  return number;
}

ArgumentType epochs(std::string name, std::optional<ArgumentValue> value, bool optional, std::string help) {
  constexpr double kMax = 1e9;
  return {std::move(name), ArgumentKind::kInteger, std::move(value), 1, kMax, optional,
          false,           std::move(help)};
}

CosineSchedule cosine(const Arguments& a) {
  const auto given = a.find("T_max");
  CosineSchedule cosine{{}, value_of<double>(a, "eta_min")};
  if (given != a.end()) cosine.t_max = std::get<std::int64_t>(given->second);
  return cosine;
}

OneCycleSchedule one_cycle(const Arguments& a) {
  return {value_of<double>(a, "pct_start"),        value_of<std::string>(a, "anneal_strategy") == "linear",
          value_of<bool>(a, "cycle_momentum"),     value_of<double>(a, "base_momentum"),
          value_of<double>(a, "max_momentum"),     value_of<double>(a, "div_factor"),
          value_of<double>(a, "final_div_factor"), value_of<bool>(a, "three_phase")};
}

WarmupSchedule warmup(const Arguments& a, const ScheduleOptions* then) {
  WarmupSchedule warmup{value_of<double>(a, "start_factor"),
                        value_of<double>(a, "end_factor"),
                        value_of<std::int64_t>(a, "total_iters"),
                        {}};
  if (then == nullptr) return warmup;
  std::visit(
      [&]<class Schedule>(const Schedule& schedule) {
        if constexpr (std::is_constructible_v<AfterWarmup, const Schedule&>) {
          warmup.then = schedule;
        } else {
          throw ConfigError("schedule: after a warmup comes one of constant, step and cosine, not " +
                            schedule_types()[then->index()].name);
        }
      },
      *then);
  return warmup;
}

double rate(const ConstantSchedule&, double lr, int, int) { return lr; }

double rate(const StepSchedule& step, double lr, int epoch, int) {
  return lr * std::pow(step.gamma, static_cast<double>(epoch / step.step_size));
}

double rate(const CosineSchedule& cosine, double lr, int epoch, int epochs) {
  const auto period = static_cast<double>(cosine.t_max.value_or(std::max(epochs, 1)));
  return cosine.eta_min + (lr - cosine.eta_min) * (1 + std::cos(std::numbers::pi * epoch / period)) / 2;
}

double rate(const WarmupSchedule& warmup, double lr, int epoch, int epochs) {
  const auto length = static_cast<int>(warmup.total_iters);
  if (warmup.then && epoch >= length) {
    return std::visit([&](const auto& then) { return rate(then, lr, epoch - length, epochs - length); },
                      *warmup.then);
  }
  const double part = static_cast<double>(std::min(epoch, length)) / length;
  return lr * (warmup.start_factor + (warmup.end_factor - warmup.start_factor) * part);
}

// OneCycleLR.get_lr() of PyTorch. Steps count from 0, so a phase of n steps ends at step n − 1; PyTorch
// subtracts one more for the end of the second phase, and so does this.
StepValues one_cycle_values(const OneCycleSchedule& cycle, double max_lr, double step, double total_steps) {
  struct Phase {
    double end_step, start_lr, end_lr, start_momentum, end_momentum;
  };
  const double initial_lr = max_lr / cycle.div_factor, min_lr = initial_lr / cycle.final_div_factor;
  const double low = cycle.base_momentum, high = cycle.max_momentum;
  const double rise = cycle.pct_start * total_steps - 1, fall = 2 * cycle.pct_start * total_steps - 2;
  std::vector<Phase> phases = {{rise, initial_lr, max_lr, high, low}};
  if (cycle.three_phase) phases.push_back({fall, max_lr, initial_lr, low, high});
  phases.push_back({total_steps - 1, cycle.three_phase ? initial_lr : max_lr, min_lr,
                    cycle.three_phase ? high : low, high});

  double start_step = 0;
  const Phase* phase = phases.data();
  for (; phase != &phases.back() && step > phase->end_step; ++phase) start_step = phase->end_step;
  // A phase of one step is at its end immediately; PyTorch divides by zero there.
  const double length = phase->end_step - start_step;
  const double part = length == 0 ? 1 : (step - start_step) / length;
  const auto between = [&](double start, double end) {
    if (cycle.linear) return (end - start) * part + start;
    return end + (start - end) / 2 * (std::cos(std::numbers::pi * part) + 1);
  };
  StepValues values = between(phase->start_lr, phase->end_lr);
  if (cycle.cycle_momentum) values.momentum = between(phase->start_momentum, phase->end_momentum);
  return values;
}

template <class ByEpoch>
StepValues step_values(const ByEpoch& schedule, double learning_rate, const TrainingPoint& point) {
  return rate(schedule, learning_rate, point.epoch, point.epochs);
}

StepValues step_values(const OneCycleSchedule& cycle, double learning_rate, const TrainingPoint& point) {
  const std::int64_t step = point.epoch * point.steps_per_epoch + point.step;
  return one_cycle_values(cycle, learning_rate, static_cast<double>(step),
                          static_cast<double>(point.epochs * point.steps_per_epoch));
}

}  // namespace

std::span<const NamedType> schedule_types() {
  static const std::vector<NamedType> types = {
      {"constant", {}},
      {"step",
       {epochs("step_size", std::nullopt, false, "epochs after which lr is multiplied with gamma"),
        exclusive(number_argument("gamma", 0.1, 0, kUnbounded, "factor"))}},
      {"cosine",
       {epochs("T_max", std::nullopt, true,
               "epochs from lr to eta_min; left out: all of the training, or those after the warmup"),
        number_argument("eta_min", 0, 0, kUnbounded, "the least learning rate")}},
      {"one_cycle",
       {number_argument("pct_start", 0.3, 0, 1, "share of the steps in which lr rises"),
        {.name = "anneal_strategy",
         .kind = ArgumentKind::kChoice,
         .default_value = std::string("cos"),
         .help = "half cosines or straight lines",
         .choices = {"cos", "linear"}},
        flag_argument(
            "cycle_momentum", true,
            "whether momentum (beta1 of adam and adamw) falls while lr rises, and rises while it falls"),
        exclusive(number_argument("base_momentum", 0.85, 0, 1, "the least momentum")),
        exclusive(number_argument("max_momentum", 0.95, 0, 1, "the largest momentum")),
        exclusive(
            number_argument("div_factor", 25, 0, kUnbounded, "the first learning rate is lr / div_factor")),
        exclusive(number_argument("final_div_factor", 1e4, 0, kUnbounded,
                                  "the last learning rate is the first / final_div_factor")),
        flag_argument("three_phase", false,
                      "whether lr falls as it rose before it goes on to its last value")}},
      {"warmup",
       {// Like torch.optim.lr_scheduler.LinearLR, which does not start at 0 either.
        {.name = "start_factor",
         .kind = ArgumentKind::kNumber,
         .default_value = 1.0 / 3,
         .maximum = 1,
         .help = "the first epoch's lr is lr times this",
         .above_minimum = true},
        number_argument("end_factor", 1, 0, 1,
                        "and after total_iters epochs it is lr times this, for good if nothing follows"),
        epochs("total_iters", std::int64_t{5}, false, "epochs from the one to the other")}},
  };
  return types;
}

std::span<const NamedType> schedule_types_after_warmup() {
  return schedule_types().first(std::variant_size_v<AfterWarmup>);
}

ScheduleOptions make_schedule(std::string_view type, const Arguments& given, const ScheduleOptions* then) {
  const NamedType& found = require_type(schedule_types(), type, "schedule");
  const Arguments a = complete_arguments(found, given, "schedule");
  if (then != nullptr && type != "warmup") {
    throw ConfigError("schedule: only warmup has a schedule after it, \"then\"; " + found.name + " has none");
  }
  if (type == "step")
    return StepSchedule{value_of<std::int64_t>(a, "step_size"), value_of<double>(a, "gamma")};
  if (type == "cosine") return cosine(a);
  if (type == "one_cycle") return one_cycle(a);
  if (type == "warmup") return warmup(a, then);
  return ConstantSchedule{};
}

StepValues values_at(const ScheduleOptions& schedule, double learning_rate, const TrainingPoint& point) {
  return std::visit([&](const auto& s) { return step_values(s, learning_rate, point); }, schedule);
}

OptimizerOptions scheduled_optimizer(const OptimizerOptions& optimizer, const ScheduleOptions& schedule) {
  const auto* cycle = std::get_if<OneCycleSchedule>(&schedule);
  if (cycle == nullptr || !cycle->cycle_momentum) return optimizer;
  return with_momentum(optimizer, cycle->max_momentum);
}

}  // namespace sweep
