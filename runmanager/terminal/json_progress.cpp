#include "runmanager/terminal/json_progress.h"

#include <utility>

#include "runmanager/records/run_record_json.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& event) {
  return event.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

class JsonProgress::ActiveRun final : public TrainingObserver {
 public:
  explicit ActiveRun(JsonProgress& progress) : progress_(progress) {}

  void begin_run(const RunPlan& plan) override {
    name_ = plan.name;
    if (progress_.quiet_) return;
    progress_.write_event({{"event", "begin"},
                           {"run", plan.name},
                           {"number", plan.number},
                           {"runs", progress_.runs_},
                           {"epochs", plan.epochs},
                           {"trained_epochs", plan.trained_epochs},
                           {"batches", plan.batches},
                           {"samples", plan.samples}});
  }
  void begin_epoch(int) override {}
  void batch(const Totals&, std::size_t) override {}
  void phase(std::string_view) override {}
  void end_epoch(const EpochRecord& epoch) override {
    if (progress_.quiet_) return;
    Json event = {{"event", "epoch"}, {"run", name_}};
    event.update(to_json(epoch));
    progress_.write_event(event);
  }

 private:
  JsonProgress& progress_;
  std::string name_;
};

JsonProgress::JsonProgress(std::function<void(std::string_view)> write, bool quiet, std::size_t runs)
    : write_(std::move(write)), quiet_(quiet), runs_(runs) {}

JsonProgress::~JsonProgress() = default;

TrainingObserver& JsonProgress::run(std::size_t number) {
  std::unique_ptr<ActiveRun>& run = active_[number];
  if (!run) run = std::make_unique<ActiveRun>(*this);
  return *run;
}

void JsonProgress::end_run(std::size_t number, const RunRecord& run) {
  active_.erase(number);
  if (quiet_ && run.status != RunStatus::kFailed) return;
  const Json record = brief_json(run);
  Json event = {{"event", "end"}, {"run", run.name}, {"number", number}};
  for (const char* key : {"status", "metrics", "error", "stopped", "run_seconds"}) {
    if (record.contains(key) && !record[key].is_null()) event[key] = record[key];
  }
  write_event(event);
}

void JsonProgress::keep_runs(std::size_t count) {
  if (count > 0 && !quiet_) write_event({{"event", "kept"}, {"runs", count}});
}

void JsonProgress::message(std::string_view line) { write_(json_message(line)); }

void JsonProgress::write_event(const Json& event) const { write_(line_of(event)); }

std::string json_message(std::string_view text) { return line_of({{"event", "message"}, {"text", text}}); }

}  // namespace sweep
