#include "runmanager/terminal/ended_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/printable.h"
#include "runmanager/terminal/table.h"

namespace sweep {
namespace {

// A piece of an ended run's line.
struct Piece {
  std::string text;
  int importance = 0;
};

std::vector<Piece> pieces_of(const RunRecord& run) {
  std::vector<Piece> pieces;
  if (!run.epochs.empty()) {
    const EpochRecord& epoch = run.epochs.back();
    const bool validated = epoch.validation_loss.has_value();
    pieces.push_back({fmt::format("loss {:.4f}", epoch.loss), 1});
    if (epoch.accuracy) pieces.push_back({fmt::format("acc {:.2f}%", 100 * *epoch.accuracy), 3});
    if (validated) pieces.push_back({fmt::format("val loss {:.4f}", *epoch.validation_loss), 2});
    if (epoch.validation_accuracy)
      pieces.push_back({fmt::format("val acc {:.2f}%", 100 * *epoch.validation_accuracy), 5});
    for (std::size_t i = 0; i < kMeasures.size(); ++i) {
      const std::optional<double>& value = (validated ? epoch.validation_measures : epoch.measures)[i];
      if (value)
        pieces.push_back({fmt::format("{}{} {}", validated ? "val " : "", kMeasures[i].title,
                                      measure_text(kMeasures[i], value)),
                          i == kRmse ? 5 : 2});
    }
  }
  if (const auto accuracy = metric_of(run, "test_accuracy"))
    pieces.push_back({fmt::format("test acc {:.2f}%", 100 * *accuracy), 4});
  if (run.run_seconds) pieces.push_back({human_seconds(*run.run_seconds), 4});
  return pieces;
}

std::string joined_texts(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& piece : pieces) text += "  " + piece.text;
  return text;
}

// The run's name in so many columns: only the values of its keys, which the live table names in the same
// order, if not all of it fits.
std::string short_name(const RunRecord& run, int columns, bool unicode) {
  std::string name = printable(run.name);
  if (display_width(name) > columns) {
    std::string values;
    for (const auto& [key, value] : run.params) {
      if (run.name.starts_with(key + "=") || run.name.find("," + key + "=") != std::string::npos)
        values += (values.empty() ? "" : ", ") + printable(param_text(value));
    }
    if (!values.empty()) name = values;
  }
  return fit_width(name, columns, unicode);
}

// As wide as the widest of the names at hand, so that the metrics behind them stand in columns.
int widest_name(const LiveSweep& sweep) {
  int width = 0;
  sweep.for_each_known([&width](const std::string& name, const Params&) {
    width = std::max(width, display_width(printable(name)));
  });
  return width;
}

std::string completed_line(const LiveSweep& sweep, const RunRecord& run, const Terminal& terminal,
                           std::string_view mark) {
  constexpr int kShortestName = 20, kMarkWidth = 2;
  const int room = std::max(kShortestName, terminal.width() - 1 - kMarkWidth);
  const int wanted = std::max(widest_name(sweep), display_width(printable(run.name)));
  std::vector<Piece> pieces = pieces_of(run);
  while (pieces.size() > 2 && wanted + display_width(joined_texts(pieces)) > room)
    pieces.erase(std::min_element(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
      return a.importance < b.importance;
    }));
  const std::string metrics = joined_texts(pieces);
  const int name_width = std::min(wanted, std::max(kShortestName, room - display_width(metrics)));
  std::string line =
      std::string(mark) + padded(short_name(run, name_width, terminal.unicode), name_width) + metrics;
  if (!run.stop_reason.empty())
    line += painted(terminal, kDim, "  stopped early: " + printable(run.stop_reason));
  return line;
}

}  // namespace

std::string metrics_text(const EpochRecord& epoch) {
  std::string text;
  if (epoch.epoch > 0) text = fmt::format("loss {:.4f}", epoch.loss);
  if (epoch.accuracy) text += fmt::format("  acc {:.2f}%", 100 * *epoch.accuracy);
  if (epoch.validation_loss)
    text += fmt::format("{}val loss {:.4f}", text.empty() ? "" : "  ", *epoch.validation_loss);
  if (epoch.validation_accuracy) text += fmt::format("  val acc {:.2f}%", 100 * *epoch.validation_accuracy);
  const bool validated = epoch.validation_loss.has_value();
  for (std::size_t i = 0; i < kMeasures.size(); ++i) {
    const std::optional<double>& value = (validated ? epoch.validation_measures : epoch.measures)[i];
    if (value)
      text += fmt::format("  {}{} {}", validated ? "val " : "", kMeasures[i].title,
                          measure_text(kMeasures[i], value));
  }
  return text;
}

std::string ended_line(const LiveSweep& sweep, const RunRecord& run, const Terminal& terminal) {
  if (run.status == RunStatus::kCompleted) {
    const bool is_best = sweep.best && sweep.best->name == run.name;
    const std::string_view mark =
        is_best ? (terminal.unicode ? "★ " : "* ") : (terminal.unicode ? "✓ " : "+ ");
    return completed_line(sweep, run, terminal, painted(terminal, kGreen, mark));
  }
  const bool is_failure = run.status == RunStatus::kFailed;
  const std::string_view mark = terminal.unicode ? (is_failure ? "✗ " : "– ") : (is_failure ? "x " : "- ");
  const std::string_view color = is_failure ? kRed : kYellow;
  return painted(terminal, color, mark) + printable(run.name) + "  " +
         painted(terminal, color, to_string(run.status)) + (run.error ? ": " + printable(*run.error) : "");
}

}  // namespace sweep
