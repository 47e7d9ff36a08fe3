#include "runmanager/sweep/event_messages.h"

#include <new>

#include "core/base/error.h"
#include "core/json/json_text.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/text/json_output.h"
#include "tbwriter/event_files.h"

namespace sweep {
namespace {

constexpr const char* kFromWorker = "a worker's message";

EpochRecord epoch_of(const std::string& text) {
  return epoch_record_from_json(parse_json_text(text, kFromWorker), kFromWorker);
}

void fill(const RunPlan& plan, proto::FromWorker& message) {
  proto::Begin& begin = *message.mutable_begin();
  begin.set_name(plan.name);
  begin.set_epochs(plan.epochs);
  begin.set_batches(plan.batches);
  begin.set_samples(plan.samples);
  begin.set_has_classes(plan.has_classes);
  begin.set_trained_epochs(plan.trained_epochs);
  for (const EpochRecord& epoch : plan.finished_epochs) begin.add_finished(compact_json_text(to_json(epoch)));
}

void fill(const TrainedBatches& trained, proto::FromWorker& message) {
  proto::Batches& batches = *message.mutable_batches();
  batches.set_epoch(trained.epoch);
  batches.set_count(trained.count);
  batches.set_loss(trained.totals.loss);
  batches.set_correct(trained.totals.correct);
  batches.set_samples(trained.totals.samples);
}

void fill(const RunPhase& phase, proto::FromWorker& message) { message.set_phase(phase.name); }

void fill(const EpochRecord& epoch, proto::FromWorker& message) {
  message.set_epoch(compact_json_text(to_json(epoch)));
}

void fill(const TrainedRun& trained, proto::FromWorker& message) {
  message.mutable_end()->set_record(compact_json_text(to_json(trained.record)));
  message.mutable_end()->set_failure(static_cast<int>(trained.failure));
  message.mutable_end()->set_changes_epochs(trained.changes_epochs);
}

void fill(const LostRun& lost, proto::FromWorker& message) { message.set_failed(lost.reason); }

void fill(const UnwritableRun& run, proto::FromWorker& message) {
  message.set_io_error(run.error);
  message.set_only_its_directory(run.only_its_directory);
}

RunPlan plan_of(const proto::Begin& begin) {
  RunPlan plan{.name = begin.name(),
               .epochs = begin.epochs(),
               .batches = begin.batches(),
               .samples = begin.samples(),
               .trained_epochs = begin.trained_epochs(),
               .has_classes = begin.has_classes()};
  for (const std::string& epoch : begin.finished()) plan.finished_epochs.push_back(epoch_of(epoch));
  return plan;
}

}  // namespace

proto::FromWorker message_of(const RunEvent& event) {
  proto::FromWorker message;
  std::visit([&message](const auto& of_kind) { fill(of_kind, message); }, event);
  return message;
}

RunEvent event_of(const proto::FromWorker& message) {
  switch (message.content_case()) {
    case proto::FromWorker::kBegin:
      return plan_of(message.begin());
    case proto::FromWorker::kBatches: {
      const proto::Batches& batches = message.batches();
      return TrainedBatches{
          .epoch = batches.epoch(),
          .count = batches.count(),
          .totals = {.loss = batches.loss(), .correct = batches.correct(), .samples = batches.samples()}};
    }
    case proto::FromWorker::kPhase:
      return RunPhase{message.phase()};
    case proto::FromWorker::kEpoch:
      return epoch_of(message.epoch());
    case proto::FromWorker::kEnd:
      return TrainedRun{.record = parse_run_record(message.end().record(), kFromWorker),
                        .failure = static_cast<RunFailure>(message.end().failure()),
                        .changes_epochs = message.end().changes_epochs()};
    case proto::FromWorker::kFailed:
      return LostRun{message.failed()};
    case proto::FromWorker::kIoError:
      return UnwritableRun{.error = message.io_error(), .only_its_directory = message.only_its_directory()};
    case proto::FromWorker::CONTENT_NOT_SET:
      break;
  }
  throw DataError("its worker sent a message without content");
}

RunEvent event_of(const std::exception& error) {
  if (dynamic_cast<const IoError*>(&error) != nullptr)
    return UnwritableRun{
        .error = error.what(),
        .only_its_directory = dynamic_cast<const tbwriter::DirectoryError*>(&error) != nullptr};
  const bool is_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return LostRun{is_memory ? "out of memory" : error.what()};
}

}  // namespace sweep
