#include "runmanager/plan/lr_find.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "core/network/arguments.h"
#include "runmanager/text/json_output.h"
#include "tbwriter/event_files.h"
#include "tbwriter/summary_writer.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Share that the mean so far keeps when a batch comes.
constexpr double kMemory = 0.85;
// The smoothed loss at which the test has seen enough, in multiples of its best.
constexpr double kDiverged = 4;

// A mean over the values so far, recent ones counting most.
class RunningMean {
 public:
  double add(double value) {
    sum_ = kMemory * sum_ + (1 - kMemory) * value;
    weight_ = kMemory * weight_ + (1 - kMemory);
    return sum_ / weight_;
  }

 private:
  double sum_ = 0, weight_ = 0;
};

void check(const LrFindOptions& options) {
  // The ratio also has to be a number: the rates between are computed by it.
  if (!(options.from > 0) || !std::isfinite(options.to / options.from) || !(options.from < options.to)) {
    throw ConfigError(fmt::format("got learning rates from {:g} to {:g}, want 0 < from < to < 1e308 * from",
                                  options.from, options.to));
  }
  if (options.steps < kMinLrSteps || options.steps > kMaxLrSteps)
    throw ConfigError(fmt::format("--steps: got {}, want {} to {}", options.steps, kMinLrSteps, kMaxLrSteps));
}

// The mean of the losses before and after each batch: means of one side alone would be late.
void smooth(std::vector<LrPoint>& points) {
  RunningMean forwards, backwards;
  for (LrPoint& point : points) point.smoothed = forwards.add(point.loss) / 2;
  for (std::size_t i = points.size(); i-- > 0;) points[i].smoothed += backwards.add(points[i].loss) / 2;
}

// The first batches are noise, and after the minimum there is nothing to find.
void suggest(LrCurve& curve) {
  const std::vector<LrPoint>& points = curve.points;
  const std::size_t first = points.size() / 10;
  if (points.size() < first + 3) return;
  std::size_t least = first;
  for (std::size_t i = first; i < points.size(); ++i) {
    if (points[i].smoothed < points[least].smoothed) least = i;
  }
  constexpr double kFall = 0.01;  // of the loss; less is noise
  if (!(points[least].smoothed < (1 - kFall) * points[first].smoothed)) return;
  std::optional<std::size_t> steepest;
  double steepest_slope = 0;
  for (std::size_t i = first + 1; i + 1 <= least; ++i) {
    const double slope = (points[i + 1].smoothed - points[i - 1].smoothed) /
                         (std::log(points[i + 1].lr) - std::log(points[i - 1].lr));
    if (slope < steepest_slope) {
      steepest = i;
      steepest_slope = slope;
    }
  }
  if (steepest) curve.steepest = points[*steepest].lr;
  constexpr double kSafety = 10;
  curve.minimum_tenth = points[least].lr / kSafety;
}

// Whether all learning rates were too high to learn: the loss only rose.
bool only_rose(const LrCurve& curve) {
  constexpr double kRise = 1.5;  // less may be noise
  return !curve.steepest && !curve.minimum_tenth &&
         (curve.diverged || curve.points.back().smoothed > kRise * curve.points.front().smoothed);
}

LrCurve test_range(const PreparedRun& run, const LrFindOptions& options) {
  EngineOptions engine_settings = engine_options(run);
  engine_settings.threads = options.threads;
  const std::unique_ptr<Engine> engine = make_engine(*run.network, engine_settings);
  set_initial_weights(*engine, run);
  DataLoader loader(run.data->train, loader_options(*run.config));
  prepare_engine(*engine, run, loader);
  LrCurve curve;
  RunningMean so_far;
  double best = 0;
  std::uint32_t epoch = 0;
  loader.begin_epoch(epoch);
  for (int step = 0; step < options.steps && !curve.diverged; ++step) {
    const Batch* batch = loader.next();
    if (batch == nullptr) {
      loader.begin_epoch(++epoch);
      batch = loader.next();
    }
    const double lr =
        options.from * std::pow(options.to / options.from, static_cast<double>(step) / (options.steps - 1));
    engine->train(*batch, lr);
    const Totals totals = engine->take_totals();
    const double loss = totals.loss / static_cast<double>(totals.samples);
    curve.diverged = !std::isfinite(loss);
    if (curve.diverged) break;
    curve.points.push_back({.lr = lr, .loss = loss});
    const double smoothed = so_far.add(loss);
    best = step == 0 ? smoothed : std::min(best, smoothed);
    curve.diverged = step > options.steps / 10 && smoothed > kDiverged * best;
  }
  smooth(curve.points);
  suggest(curve);
  return curve;
}

// A line per learning rate: the smoothed loss, and a bar whose length is its place between the least loss and
// the largest before it. What comes after the minimum only shows that it rises.
std::string bars_text(const LrCurve& curve, int width, bool unicode) {
  constexpr std::size_t kRows = 25;
  constexpr int kNumbers = 22, kWidest = 60;
  const auto by_smoothed = [](const LrPoint& a, const LrPoint& b) { return a.smoothed < b.smoothed; };
  const auto least = std::min_element(curve.points.begin(), curve.points.end(), by_smoothed);
  const double low = least->smoothed;
  const double high = std::max_element(curve.points.begin(), least + 1, by_smoothed)->smoothed;
  const int widest = std::clamp(width - kNumbers, 1, kWidest);
  TextTable table({"lr", "loss"}, 0);
  const std::size_t last = curve.points.size() - 1, rows = std::min(kRows - 1, last);
  for (std::size_t row = 0; row <= rows; ++row) {
    const LrPoint& point = curve.points[row * last / rows];
    const double part = high > low ? std::clamp((point.smoothed - low) / (high - low), 0.0, 1.0) : 1;
    table.rows.push_back({fmt::format("{:.2g}", point.lr), fmt::format("{:.4g}", point.smoothed)});
    std::string& bar = table.tails.emplace_back();
    for (long column = 0; column <= std::lround(part * (widest - 1)); ++column) bar += unicode ? "■" : "*";
  }
  return formatted_table(table, {.unicode = unicode});
}

}  // namespace

LrCurve find_lr(const PreparedRun& run, const LrFindOptions& options) {
  check(options);
  const LrCurve asked = test_range(run, options);
  LrCurve curve = asked;
  LrFindOptions wider = options;
  constexpr double kFactor = 1e3, kLowest = 1e-9;
  while (only_rose(curve) && wider.from > kLowest) {
    wider.to = curve.points.empty() ? wider.from : std::max(wider.from, curve.points.back().lr);
    wider.from /= kFactor;
    curve = test_range(run, wider);
    curve.is_widened = true;
  }
  return curve.minimum_tenth ? curve : asked;
}

std::string lr_curve_text(const LrCurve& curve, int width, bool unicode) {
  std::string text;
  if (curve.points.size() > 1) text = bars_text(curve, width, unicode) + "\n";
  if (curve.is_widened) text += "The range begins lower than was asked for: there the loss only rose.\n";
  if (curve.diverged) {
    text += curve.points.empty() ? "The loss is not finite from the first batch on.\n"
                                 : fmt::format("The loss diverged at lr {:.2g}.\n", curve.points.back().lr);
  }
  if (!curve.steepest && !curve.minimum_tenth)
    return text + "The loss did not fall, so no learning rate is suggested.\n";
  if (curve.steepest) text += fmt::format("steepest descent        lr {:.2g}\n", *curve.steepest);
  if (curve.minimum_tenth) text += fmt::format("a tenth of the minimum  lr {:.2g}\n", *curve.minimum_tenth);
  return text;
}

Json lr_curve_json(const LrCurve& curve) {
  Json points = Json::array();
  int step = 0;
  for (const LrPoint& point : curve.points) {
    points.push_back(
        {{"step", ++step}, {"lr", point.lr}, {"loss", point.loss}, {"smoothed_loss", point.smoothed}});
  }
  return {{"diverged", curve.diverged},
          {"widened", curve.is_widened},
          {"steepest", json_number(curve.steepest)},
          {"minimum_tenth", json_number(curve.minimum_tenth)},
          {"points", std::move(points)}};
}

TextTable lr_curve_table(const LrCurve& curve) {
  TextTable table({"step", "lr", "loss", "smoothed_loss"}, 0);
  for (const LrPoint& point : curve.points) {
    table.rows.push_back({std::to_string(table.rows.size() + 1), number_text(point.lr),
                          number_text(point.loss), number_text(point.smoothed)});
  }
  return table;
}

void write_lr_events(const LrCurve& curve, const fs::path& directory) {
  std::error_code error;
  for (const std::string& file : tbwriter::list_event_files(directory)) fs::remove(directory / file, error);
  tbwriter::SummaryWriter writer(directory);
  std::int64_t step = 0;
  for (const LrPoint& point : curve.points) {
    ++step;
    writer.add_scalar("Learning rate test/lr", point.lr, step);
    writer.add_scalar("Learning rate test/loss", point.loss, step);
    writer.add_scalar("Learning rate test/smoothed loss", point.smoothed, step);
  }
  writer.close();
}

}  // namespace sweep
