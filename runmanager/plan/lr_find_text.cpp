// The curve of a learning-rate range test as text, JSON, CSV and events.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "core/spec/arguments.h"
#include "runmanager/plan/lr_find.h"
#include "tbwriter/event_file_name.h"
#include "tbwriter/summary_writer.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Dots of two columns and four rows per character: Braille patterns, whose bits are numbered so.
constexpr std::array<std::array<unsigned, 2>, 4> kBraille = {
    {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};

std::string utf8(unsigned code) {
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

// A drawing of characters, or of the dots in them.
class Canvas {
 public:
  Canvas(int columns, int rows, bool unicode)
      : columns_(columns), rows_(rows), dots_x_(unicode ? 2 : 1), dots_y_(unicode ? 4 : 1) {
    cells_.resize(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows));
  }

  int width() const { return columns_ * dots_x_; }
  int height() const { return rows_ * dots_y_; }

  void set(int x, int y) {
    if (x < 0 || y < 0 || x >= width() || y >= height()) return;
    unsigned& cell = cells_[index_of(x / dots_x_, y / dots_y_)];
    cell |= dots_x_ == 1 ? 1u : kBraille[static_cast<std::size_t>(y % 4)][static_cast<std::size_t>(x % 2)];
  }

  void line(int x0, int y0, int x1, int y1) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i) set(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps);
  }

  std::string row(int y) const {
    std::string text;
    for (int x = 0; x < columns_; ++x) {
      const unsigned cell = cells_[index_of(x, y)];
      constexpr unsigned kFirstPattern = 0x2800;
      if (cell == 0)
        text += ' ';
      else
        text += dots_x_ == 1 ? "*" : utf8(kFirstPattern + cell);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

 private:
  std::size_t index_of(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(x);
  }

  int columns_, rows_, dots_x_, dots_y_;
  std::vector<unsigned> cells_;
};

// From a learning rate to a place between 0 and 1 on the axis.
double place_of(double lr, const LrCurve& curve) {
  const double low = std::log(curve.points.front().lr), high = std::log(curve.points.back().lr);
  return high > low ? (std::log(lr) - low) / (high - low) : 0;
}

constexpr int kLabel = 9;  // columns for the losses left of the plot

std::string axis_text(const LrCurve& curve, int columns, bool unicode) {
  std::string ticks(static_cast<std::size_t>(columns), '-'), labels;
  std::string line;
  const int first = static_cast<int>(std::ceil(std::log10(curve.points.front().lr) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(curve.points.back().lr) + 1e-9));
  for (int decade = first; decade <= last; ++decade) {
    const double lr = std::pow(10.0, decade);
    const auto at = static_cast<std::size_t>(std::lround(place_of(lr, curve) * (columns - 1)));
    ticks[std::min(at, ticks.size() - 1)] = '+';
    const std::string label = fmt::format("{:g}", lr);
    if (at < labels.size() + (labels.empty() ? 0 : 2)) continue;
    if (at + label.size() > static_cast<std::size_t>(columns)) continue;
    labels.append(at - labels.size(), ' ');
    labels += label;
  }
  for (const char c : ticks) line += c == '+' ? (unicode ? "┴" : "+") : (unicode ? "─" : "-");
  const std::string indent(kLabel, ' ');
  return fmt::format("{}{}{}\n{} {}\n", indent, unicode ? "└" : "+", line, indent, labels);
}

std::string plot_text(const LrCurve& curve, int width, bool unicode) {
  constexpr int kRows = 12, kNarrowest = 20, kWidest = 100;
  const int columns = std::clamp(width - kLabel - 2, kNarrowest, kWidest);
  const auto by_smoothed = [](const LrPoint& a, const LrPoint& b) { return a.smoothed < b.smoothed; };
  const auto least = std::min_element(curve.points.begin(), curve.points.end(), by_smoothed);
  const double low = least->smoothed;
  // What comes behind the minimum only shows that it rises.
  double high = std::max_element(curve.points.begin(), least + 1, by_smoothed)->smoothed;
  constexpr double kRoom = 0.15;
  high += kRoom * std::max(high - low, 1e-6);
  Canvas canvas(columns, kRows, unicode);
  const auto x_of = [&](const LrPoint& p) {
    return static_cast<int>(std::lround(place_of(p.lr, curve) * (canvas.width() - 1)));
  };
  const auto y_of = [&](const LrPoint& p) {
    const double y = std::clamp((high - p.smoothed) / (high - low), -1.0, 1.0);
    return static_cast<int>(std::lround(y * (canvas.height() - 1)));
  };
  for (std::size_t i = 1; i < curve.points.size(); ++i) {
    const LrPoint &a = curve.points[i - 1], &b = curve.points[i];
    canvas.line(x_of(a), y_of(a), x_of(b), y_of(b));
  }
  std::string text = fmt::format("{:>{}}\n", "loss", kLabel);
  for (int row = 0; row < kRows; ++row) {
    const bool labelled = row == 0 || row == kRows - 1 || row == kRows / 2;
    const double value = high - (high - low) * row / (kRows - 1);
    const std::string label = labelled ? fmt::format("{:.4g}", value) : "";
    text += fmt::format("{:>{}} {}{}\n", label, kLabel - 1,
                        labelled ? (unicode ? "┤" : "+") : (unicode ? "│" : "|"), canvas.row(row));
  }
  return text + axis_text(curve, columns, unicode);
}

}  // namespace

std::string lr_curve_text(const LrCurve& curve, int width, bool unicode) {
  std::string text;
  if (curve.points.size() > 1) text = plot_text(curve, width, unicode) + "\n";
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
  const auto or_null = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  return {{"diverged", curve.diverged},
          {"steepest", or_null(curve.steepest)},
          {"minimum_tenth", or_null(curve.minimum_tenth)},
          {"points", std::move(points)}};
}

std::string lr_curve_csv(const LrCurve& curve) {
  std::string text = "step,lr,loss,smoothed_loss\n";
  int step = 0;
  for (const LrPoint& point : curve.points) {
    text += fmt::format("{},{},{},{}\n", ++step, number_text(point.lr), number_text(point.loss),
                        number_text(point.smoothed));
  }
  return text;
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
