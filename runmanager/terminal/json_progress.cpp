#include "runmanager/terminal/json_progress.h"

#include <utility>

#include "runmanager/records/run_record_json.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& event) { return compact_json_text(event) + "\n"; }

}  // namespace

JsonProgress::JsonProgress(std::function<void(std::string_view)> write, std::function<double()> clock,
                           bool quiet, const std::string& sweep, std::size_t runs, double work)
    : Progress(std::move(clock), sweep, runs, work), write_(std::move(write)), quiet_(quiet) {}

void JsonProgress::show_begin(const LiveRun& run) {
  if (quiet_) return;
  write_event({{"event", "begin"},
               {"run", run.name},
               {"number", run.number},
               {"runs", state().runs},
               {"epochs", run.epochs},
               {"trained_epochs", run.trained_epochs},
               {"batches", run.batches},
               {"samples", run.samples}});
}

void JsonProgress::show_epoch(const LiveRun& run, const EpochRecord& epoch) {
  if (quiet_) return;
  Json event = {{"event", "epoch"}, {"run", run.name}};
  event.update(to_json(epoch));
  write_event(event);
}

void JsonProgress::show_end(std::size_t number, const RunRecord& run) {
  if (quiet_ && run.status != RunStatus::kFailed) return;
  Json event = {{"event", "end"}, {"run", run.name}, {"number", number}};
  event.update(ending_json(run));
  write_event(event);
}

void JsonProgress::show_kept(std::size_t count) {
  if (!quiet_) write_event({{"event", "kept"}, {"runs", count}});
}

void JsonProgress::message(std::string_view line) { write_(json_message(line)); }

void JsonProgress::write_event(const Json& event) const { write_(line_of(event)); }

std::string json_message(std::string_view text) { return line_of({{"event", "message"}, {"text", text}}); }

}  // namespace sweep
