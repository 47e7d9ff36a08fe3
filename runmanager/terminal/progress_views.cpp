#include <fmt/format.h>

#include <utility>

#include "core/base/printable.h"
#include "core/base/text.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/terminal/live_sweep.h"
#include "runmanager/terminal/progress.h"
#include "runmanager/terminal/terminal.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& event) { return compact_json_text(event) + "\n"; }

class JsonProgress final : public Progress {
 public:
  using Progress::Progress;
  void message(std::string_view line) override { options_.terminal.write(json_message(line)); }

 private:
  void show_kept(std::size_t count) override { write_event({{"event", "kept"}, {"runs", count}}); }

  void show_begin(const LiveRun& run) override {
    write_event({{"event", "begin"},
                 {"run", run.name},
                 {"number", run.number},
                 {"runs", state().runs},
                 {"epochs", run.epochs},
                 {"trained_epochs", run.trained_epochs},
                 {"batches", run.batches},
                 {"samples", run.samples}});
  }

  void show_epoch(const LiveRun& run, const EpochRecord& epoch) override {
    write_event({{"event", "epoch"}, {"run", run.name}}, to_json(epoch));
  }

  void show_end(std::size_t number, const RunRecord& run) override {
    write_event({{"event", "end"}, {"run", run.name}, {"number", number}}, ending_json(run),
                run.status == RunStatus::kFailed);
  }

  void write_event(Json event, const Json& more = Json::object(), bool is_failure = false) const {
    if (options_.quiet && !is_failure) return;
    event.update(more);
    options_.terminal.write(line_of(event));
  }
};

class TerminalProgress final : public Progress {
 public:
  using Progress::Progress;
  void message(std::string_view line) override { write_line(printable(line)); }

 private:
  void show_kept(std::size_t count) override {
    if (options_.quiet) return;
    write_line(painted(terminal_, kDim, counted(count, "finished run") + " kept"));
  }

  void show_epoch(const LiveRun& run, const EpochRecord& epoch) override {
    if (!options_.quiet && !terminal_.interactive) write_line(epoch_line(state(), run, epoch));
  }

  void show_end(std::size_t number, const RunRecord& run) override {
    if (options_.quiet && run.status != RunStatus::kFailed) return;
    if (!terminal_.interactive) return write_log_end(number, run);
    // Many runs are skipped for one reason: the first tells it, the live table counts, the results have all.
    if (run.status == RunStatus::kSkipped && std::exchange(last_skip_, run.error.value_or("")) == run.error)
      return;
    write_line(ended_line(state(), run, terminal_));
  }

  void show_change(double now) override {
    constexpr double kSecondsBetweenDraws = 0.1;
    if (options_.quiet || !terminal_.interactive || now < next_draw_) return;
    next_draw_ = now + kSecondsBetweenDraws;
    region_.draw(live_table(state(), terminal_));
  }

  // In a log each epoch of a run has a line, so a completed run has been shown.
  void write_log_end(std::size_t number, const RunRecord& run) {
    const std::string place = fmt::format("[{}/{}] {}  ", number, state().runs, printable(run.name));
    if (run.status != RunStatus::kCompleted) {
      write_line(place + std::string(to_string(run.status)) +
                 (run.error ? ": " + printable(*run.error) : ""));
    } else if (!run.stop_reason.empty()) {
      write_line(place + "stopped early: " + printable(run.stop_reason));
    }
  }

  // Writes a line that stays.
  void write_line(const std::string& line) {
    if (terminal_.interactive) {
      region_.write_above(line + "\n");
    } else {
      terminal_.write(line + "\n");
    }
    next_draw_ = 0;
  }

  const Terminal& terminal_ = options_.terminal;
  LiveRegion region_{terminal_};  // the destructor erases it
  double next_draw_ = 0;
  std::string last_skip_;  // the reason of the last run that was skipped
};

}  // namespace

std::unique_ptr<Progress> make_progress(ProgressOptions options) {
  if (options.json) return std::make_unique<JsonProgress>(std::move(options));
  return std::make_unique<TerminalProgress>(std::move(options));
}

std::string json_message(std::string_view text) { return line_of({{"event", "message"}, {"text", text}}); }

}  // namespace sweep
