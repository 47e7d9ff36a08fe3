#include "runmanager/sweep/worker_pool.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/sweep/event_messages.h"
#include "runmanager/sweep/worker.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

std::array<int, 2> connected_sockets() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw IoError(fmt::format("cannot make a connection to a worker: {}", std::strerror(errno)));
  return ends;
}

ChildStart start_of(const WorkerCommand& command, int socket) {
  ChildStart start{.words = command.words,
                   .group = ChildGroup::kParents,
                   .captures_output = false,
                   .inherited = command.inherited};
  start.words.push_back(std::to_string(socket));
  start.inherited.push_back(socket);
  return start;
}

}  // namespace

WorkerPool::WorkerPool(WorkerCommand command, std::filesystem::path directory,
                       const std::vector<SharedDataset>& datasets, std::size_t slots, double timeout)
    : command_(std::move(command)),
      directory_(std::move(directory)),
      datasets_(datasets),
      timeout_(timeout),
      slots_(slots) {
  for (const SharedDataset& dataset : datasets_) {
    command_.inherited.push_back(dataset.fd());
    if (dataset.file_fd() >= 0) command_.inherited.push_back(dataset.file_fd());
  }
}

proto::ToWorker WorkerPool::setup_message() const {
  proto::ToWorker message;
  proto::Setup& setup = *message.mutable_setup();
  setup.set_directory(directory_.string());
  setup.set_timeout(timeout_);
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
    slot.provenance.clear();
    slot.worker->socket().send(setup_message());
  }
  slot.run = &run;
  proto::ToWorker message;
  proto::Train& train = *message.mutable_train();
  train.set_index(run.run);
  train.set_dataset(run.needs.dataset);
  train.set_threads(threads);
  train.set_until_epoch(run.until_epoch);
  nlohmann::ordered_json told = to_json(record);
  if (record.provenance == slot.provenance)
    told["provenance"] = nullptr;
  else
    slot.provenance = record.provenance;
  train.set_record(compact_json_text(told));
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
  if (slots_[slot].run == nullptr) return;  // deliver() is just telling its end
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

void WorkerPool::deliver(std::size_t slot, const ReportEvent& report) {
  // An error of `report` says nothing about the message.
  while (slots_[slot].run != nullptr) {
    const std::optional<RunEvent> event = next_event(slots_[slot]);
    if (!event) return;
    report(*event);
  }
}

std::optional<RunEvent> WorkerPool::next_event(Slot& slot) {
  RunEvent event;
  try {
    proto::FromWorker message;
    const auto arrived = slot.worker->socket().poll(message);
    if (arrived == MessageSocket::Arrived::kNothing) return std::nullopt;
    event = arrived == MessageSocket::Arrived::kMessage
                ? event_of(message)
                : LostRun{fmt::format("its worker was lost: {}", slot.worker->exit_reason())};
  } catch (const DataError& error) {
    event = LostRun{error.what()};
  }
  const auto* const trained = std::get_if<TrainedRun>(&event);
  const bool is_end = trained != nullptr || std::holds_alternative<LostRun>(event) ||
                      std::holds_alternative<UnwritableRun>(event);
  if (is_end) slot.run = nullptr;
  // The worker exits after a failure, also one of its device; the next run gets a new one. The process must
  // be gone before anybody else writes to the run's files.
  if (is_end && (trained == nullptr || trained->failure == RunFailure::kDevice || slot.is_killed))
    slot.worker.reset();
  return event;
}

WorkerProcess::WorkerProcess(const WorkerCommand& command) : WorkerProcess(command, connected_sockets()) {}

WorkerProcess::WorkerProcess(const WorkerCommand& command, std::array<int, 2> sockets)
    : socket_(sockets[0]), child_(start_of(command, MessageSocket(sockets[1]).fd())) {
  if (const auto end = child_.end(); end && end->kind == ProcessEnd::Kind::kNotStarted)
    throw IoError(fmt::format("cannot start a worker ({}): {}", command.words[0], std::strerror(end->value)));
}

void WorkerProcess::signal_end() const {
  // One that cannot be signalled ends by itself once its socket is closed.
  if (!child_.kill()) ::shutdown(socket_.fd(), SHUT_RDWR);
}

std::string WorkerProcess::exit_reason() {
  const std::optional<ProcessEnd> end = child_.wait_for_end(std::chrono::seconds(1));
  if (!end) return "closed its connection and had to be killed";
  if (end->kind == ProcessEnd::Kind::kExit)
    return end->value == kWorkerOutOfMemory ? "out of memory"
                                            : fmt::format("ended with exit code {}", end->value);
  return killed_by(end->value);  // This process does not ask after killing a worker itself.
}

}  // namespace sweep
