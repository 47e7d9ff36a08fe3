// Records of runs that were never trained.
#pragma once

#include <algorithm>

#include "core/base/text.h"
#include "runmanager/answers/source_runs.h"
#include "runmanager/terminal/terminal.h"
#include "tests/support/test.h"

namespace sweep::testing {

/// A completed run of the sweep `source`, with a loss per epoch; each epoch takes `seconds`.
inline SourceRun made_run(Params params, std::string device, double seconds,
                          const std::vector<double>& losses = {1.0}, std::string source = "runs/s") {
  SourceRun run{.source = std::move(source), .record = {}};
  RunRecord& record = run.record;
  for (const auto& [key, value] : params) record.name += key + ";";
  record.name += device;
  record.status = RunStatus::kCompleted;
  record.params = std::move(params);
  record.device = std::move(device);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    record.epochs.push_back({static_cast<int>(i) + 1,
                             {{"loss", losses[i]},
                              {"accuracy", 0.5},
                              {"epoch_seconds", seconds},
                              {"images_per_second", 1000 / seconds},
                              {"data_wait_seconds", 0}}});
  }
  record.metrics = {{"test_accuracy", 0.5}};
  return run;
}

/// A completed run of two epochs with this validation accuracy.
inline SourceRun graded(Params params, double accuracy, double seconds = 1, std::string device = "cpu") {
  SourceRun run = made_run(std::move(params), std::move(device), seconds, {1.0, 0.5});
  for (EpochRecord& epoch : run.record.epochs) epoch.set("validation_accuracy", accuracy);
  run.record.metrics.clear();
  return run;
}

/// The columns that `text` takes.
inline int widest_line(const std::string& text) {
  int widest = 0;
  for (const std::string_view line : split(text, '\n')) widest = std::max(widest, display_width(line));
  return widest;
}

}  // namespace sweep::testing

namespace sweep {
using testing::made_run, testing::graded;
}  // namespace sweep
