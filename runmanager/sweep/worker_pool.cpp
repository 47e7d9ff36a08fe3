#include "runmanager/sweep/worker_pool.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/json/json_text.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

constexpr const char* kFromWorker = "a worker's message";

EpochRecord epoch_of(const std::string& text) {
  return epoch_record_from_json(parse_json_text(text, kFromWorker), kFromWorker);
}

RunPlan plan_of(const ScheduledRun& run, const proto::Begin& begin) {
  RunPlan plan{.number = run.run + 1,
               .name = run.prepared.config->name,
               .epochs = begin.epochs(),
               .batches = begin.batches(),
               .samples = begin.samples(),
               .trained_epochs = begin.trained_epochs(),
               .has_classes = begin.has_classes()};
  for (const std::string& epoch : begin.finished()) plan.finished_epochs.push_back(epoch_of(epoch));
  return plan;
}

}  // namespace

WorkerPool::WorkerPool(WorkerCommand command, std::filesystem::path directory,
                       const std::vector<SharedDataset>& datasets, std::size_t slots)
    : command_(std::move(command)), directory_(std::move(directory)), datasets_(datasets), slots_(slots) {
  for (const SharedDataset& dataset : datasets_) {
    command_.inherited.push_back(dataset.fd());
    if (dataset.file_fd() >= 0) command_.inherited.push_back(dataset.file_fd());
  }
}

proto::ToWorker WorkerPool::setup_message() const {
  proto::ToWorker message;
  proto::Setup& setup = *message.mutable_setup();
  setup.set_directory(directory_.string());
  for (const SharedDataset& dataset : datasets_) {
    proto::SharedMemory& memory = *setup.add_datasets();
    memory.set_fd(dataset.fd());
    if (dataset.file_fd() >= 0) memory.set_file(dataset.file_fd());
    memory.set_description(compact_json_text(dataset.description()));
  }
  return message;
}

void WorkerPool::start(std::size_t slot_index, const ScheduledRun& run, const RunRecord& record,
                       int threads) {
  Slot& slot = slots_[slot_index];
  if (!slot.worker) {
    slot.worker = std::make_unique<WorkerProcess>(command_);
    slot.is_killed = false;
    slot.worker->socket().send(setup_message());
  }
  slot.run = &run;
  proto::ToWorker message;
  proto::Train& train = *message.mutable_train();
  train.set_index(run.run);
  train.set_dataset(run.dataset);
  train.set_threads(threads);
  train.set_until_epoch(run.prepared.until_epoch);
  train.set_record(run_record_text(record));
  if (run.lock) train.set_owner(run.lock->owner().id);
  // If the worker is gone already, deliver() notices that its socket is closed.
  slot.worker->socket().send(message, run.lock ? run.lock->fd() : -1);
}

void WorkerPool::set_threads(std::size_t slot, int threads) {
  proto::ToWorker message;
  message.set_threads(threads);
  slots_[slot].worker->socket().send(message);
}

void WorkerPool::request_stop(std::size_t slot, int signal) {
  proto::ToWorker message;
  message.set_stop_signal(signal);
  slots_[slot].worker->socket().send(message);
}

// Its socket closes when it is gone, which deliver() notices.
void WorkerPool::kill(std::size_t slot) {
  slots_[slot].worker->signal_end();
  slots_[slot].is_killed = true;
}

void WorkerPool::wait(std::chrono::milliseconds timeout) {
  std::vector<pollfd> descriptors;
  for (const Slot& slot : slots_) {
    if (slot.run != nullptr) descriptors.push_back({slot.worker->socket().fd(), POLLIN, 0});
  }
  const int ready = ::poll(descriptors.data(), descriptors.size(), static_cast<int>(timeout.count()));
  // For want of memory, say. Messages are looked for all the same, but not in a busy loop.
  constexpr std::chrono::milliseconds kPause(10);
  if (ready < 0 && errno != EINTR) std::this_thread::sleep_for(std::min(timeout, kPause));
}

void WorkerPool::deliver(std::size_t slot_index, RunListener& listener) {
  Slot& slot = slots_[slot_index];
  while (slot.run != nullptr) {
    proto::FromWorker message;
    Event event;
    try {
      const auto arrived = slot.worker->socket().poll(message);
      if (arrived == MessageSocket::Arrived::kNothing) return;
      if (arrived == MessageSocket::Arrived::kEnd)
        return lose_worker(slot, listener,
                           fmt::format("its worker was lost: {}", slot.worker->exit_reason()));
      event = event_of(slot, message);
    } catch (const DataError& error) {
      return lose_worker(slot, listener, error.what());
    }
    // Not above: an error of the listener says nothing about the message.
    event(listener);
  }
}

WorkerPool::Event WorkerPool::event_of(Slot& slot, const proto::FromWorker& message) {
  switch (message.content_case()) {
    case proto::FromWorker::kBegin:
      return [plan = plan_of(*slot.run, message.begin())](RunListener& to) { to.begin_run(plan); };
    case proto::FromWorker::kBatches:
      return [batches = message.batches()](RunListener& to) {
        if (batches.begins_epoch()) to.begin_epoch(batches.epoch());
        to.batch({.loss = batches.loss(), .correct = batches.correct(), .samples = batches.samples()},
                 batches.count());
      };
    case proto::FromWorker::kPhase:
      return [phase = message.phase()](RunListener& to) { to.phase(phase); };
    case proto::FromWorker::kEpoch:
      return [epoch = epoch_of(message.epoch())](RunListener& to) { to.end_epoch(epoch); };
    case proto::FromWorker::kEnd: {
      TrainedRun trained{.record = parse_run_record(message.end().record(), kFromWorker),
                         .failure = static_cast<RunFailure>(message.end().failure()),
                         .lacks_epochs = message.end().lacks_epochs()};
      slot.run = nullptr;
      // The worker exits after a failure of its device; the next run gets a new one.
      if (trained.failure == RunFailure::kDevice || slot.is_killed) slot.worker.reset();
      return [trained = std::move(trained)](RunListener& to) { to.end_run(trained); };
    }
    case proto::FromWorker::kFailed:
      return [this, &slot, why = message.failed()](RunListener& to) { lose_worker(slot, to, why); };
    case proto::FromWorker::kIoError:
      slot.worker.reset();
      slot.run = nullptr;
      return [error = message.io_error()](RunListener& to) { to.fail_writing(error); };
    case proto::FromWorker::CONTENT_NOT_SET:
      break;
  }
  throw DataError("its worker sent a message without content");
}

void WorkerPool::lose_worker(Slot& slot, RunListener& listener, const std::string& reason) {
  // The process must be gone before the listener writes to the run's files.
  slot.worker.reset();
  slot.run = nullptr;
  listener.lose_run(reason);
}

}  // namespace sweep
