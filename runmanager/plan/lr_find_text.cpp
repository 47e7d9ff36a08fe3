// The curve of a learning-rate range test as text, JSON, CSV and events.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "core/network/arguments.h"
#include "runmanager/plan/lr_find.h"
#include "runmanager/text/json_output.h"
#include "tbwriter/event_files.h"
#include "tbwriter/summary_writer.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

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

nlohmann::ordered_json lr_curve_json(const LrCurve& curve) {
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
