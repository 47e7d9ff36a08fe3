// The learning-rate range test: which learning rates a network can be trained with.
//
// L. N. Smith, Cyclical Learning Rates for Training Neural Networks, WACV 2017 (arXiv:1506.01186): the
// learning rate rises from batch to batch, and the loss falls while it is good. Stops and suggests as
// fast.ai's lr_find does.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/terminal/table.h"
#include "runmanager/training/prepared_run.h"

namespace sweep {

inline constexpr int kMinLrSteps = 10, kMaxLrSteps = 1'000'000;

struct LrFindOptions {
  double from = 1e-7, to = 10;  // learning rates of the first and the last batch; 0 < from < to
  int steps = 100;              // batches, over several epochs if one has fewer; kMinLrSteps to kMaxLrSteps
  int threads = 0;              // CPU threads, 0: all. Never changes a bit
};

/// One batch.
struct LrPoint {
  double lr = 0;
  double loss = 0;      // mean over the batch
  double smoothed = 0;  // over neighbouring batches, on both sides
};

struct LrCurve {
  std::vector<LrPoint> points;          // fewer than were asked for if it diverged
  bool diverged = false;                // the smoothed loss rose to four times its best, or was not finite
  bool is_widened = false;              // begins lower than requested, where the loss only rose
  std::optional<double> steepest;       // the learning rate at which the loss falls fastest
  std::optional<double> minimum_tenth;  // a tenth of the one at which the loss is lowest
};

/// Trains the run's network from its initial weights, with its data, order, batch size, optimizer and loss;
/// without schedules. Gives the same bits every time. A range in which the loss only rises is widened
/// downwards, if that gives a suggestion, and ends where it diverged. Without suggestions if the loss never
/// falls. Throws ConfigError for options out of range, DeviceError, and what the engine throws.
LrCurve find_lr(const PreparedRun& run, const LrFindOptions& options);

/// The curve as bars in lines of up to `width` columns, and what it suggests. Ends with a newline.
std::string lr_curve_text(const LrCurve& curve, int width, bool unicode);
nlohmann::ordered_json lr_curve_json(const LrCurve& curve);
/// A row per batch: step (from 1), lr, loss, smoothed_loss.
TextTable lr_curve_table(const LrCurve& curve);

/// Writes the curve as scalars to `directory`, a separate directory, and replaces an earlier curve.
/// Throws IoError.
void write_lr_events(const LrCurve& curve, const std::filesystem::path& directory);

}  // namespace sweep
