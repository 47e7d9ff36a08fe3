#include "runmanager/sweep/worker.h"

#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "core/base/out_of_memory.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "core/json/json_text.h"
#include "proto/worker.pb.h"
#include "runmanager/kinds/shared_dataset.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/sweep/event_messages.h"
#include "runmanager/sweep/make_run_kind.h"
#include "runmanager/sweep/message_socket.h"
#include "runmanager/training/run_trainer.h"
#include "runmanager/training/stop_signals.h"

namespace sweep {
namespace {

constexpr const char* kToWorker = "a message to a worker";

// The terminal is drawn as often; more messages would show nothing new.
constexpr double kSecondsBetweenMessages = 1.0 / 15;

// How late a stop or a number of threads reaches the run, at most; asking after each small batch would cost.
constexpr double kSecondsBetweenLooks = 0.005;

// The messages of the sweep. A stop and a number of threads may come while a run is trained; the run asks.
class Inbox {
 public:
  explicit Inbox(MessageSocket& socket) : socket_(socket) {}

  /// Waits for the next message that is none of these; empty once the other end has closed.
  std::optional<proto::ToWorker> next() {
    proto::ToWorker message;
    while (socket_.receive(message)) {
      if (!take(message)) return message;
    }
    return std::nullopt;
  }

  int stop_signal() {
    look();
    return stop_;
  }
  int threads() {
    look();
    return threads_;
  }

 private:
  void look() {
    const double now = steady_seconds();
    if (now < next_look_) return;
    next_look_ = now + kSecondsBetweenLooks;
    proto::ToWorker message;
    MessageSocket::Arrived arrived = socket_.poll(message);
    for (; arrived == MessageSocket::Arrived::kMessage; arrived = socket_.poll(message)) take(message);
    // The sweep is gone. Training on would only keep its directory locked, and the last checkpoint is enough
    // to resume from.
    if (arrived == MessageSocket::Arrived::kEnd) ::_exit(1);
  }

  // Returns whether the message says no more.
  bool take(const proto::ToWorker& message) {
    if (message.has_stop_signal()) stop_ = message.stop_signal();
    if (message.has_threads()) threads_ = message.threads();
    if (message.has_train()) threads_ = message.train().threads();
    return message.has_stop_signal() || message.has_threads();
  }

  MessageSocket& socket_;
  int stop_ = 0, threads_ = 0;
  double next_look_ = 0;
};

// Sends the events of a run to the sweep. Batches and phases are merged into a few messages a second.
class EventSender {
 public:
  explicit EventSender(MessageSocket& socket) : socket_(socket) {}

  void send(const RunEvent& event) {
    std::visit([this](const auto& of_kind) { take(of_kind); }, event);
  }

 private:
  void take(const TrainedBatches& batches) {
    if (batches.epoch != batches_.epoch) {
      send_batches();
      batches_.epoch = batches.epoch;
    }
    batches_.count += batches.count;
    batches_.totals += batches.totals;
    if (batches.count > 0 && is_due()) send_batches();
  }

  void take(const RunPhase& phase) {
    if (!is_due() && phase.name == phase_) return;
    phase_ = phase.name;
    send_now(phase);
  }

  void take(const EpochRecord& epoch) {
    // The next epoch may have begun already; its batches then wait for their own message.
    if (epoch.epoch == batches_.epoch) send_batches();
    send_now(epoch);
  }

  void take(const auto& other) { send_now(other); }

  bool is_due() {
    const double now = steady_seconds();
    if (now < next_) return false;
    next_ = now + kSecondsBetweenMessages;
    return true;
  }

  void send_batches() {
    phase_.clear();  // It has ended, so the same one is another one.
    if (batches_.count == 0) return;
    send_now(batches_);
    batches_ = {.epoch = batches_.epoch};
  }

  void send_now(const RunEvent& event) { socket_.send(message_of(event)); }

  MessageSocket& socket_;
  double next_ = 0;                     // when the next message is due
  TrainedBatches batches_{.epoch = 0};  // not sent yet
  std::string phase_;
};

// Handles messages in the main thread: sets up the data sets once, then does run after run.
class Worker {
 public:
  Worker(MessageSocket& socket, Inbox& inbox, const WorkerEnvironment& environment)
      : socket_(socket), inbox_(inbox), environment_(environment) {}

  /// Returns whether another run can follow.
  bool handle(const proto::ToWorker& message) {
    try {
      if (message.has_setup()) {
        set_up(message.setup());
        return true;
      }
      return train(message.train());
    } catch (const std::exception& error) {
      socket_.send(message_of(event_of(error)));
      return false;  // The state of this process is unknown after such an error.
    }
  }

 private:
  void set_up(const proto::Setup& setup) {
    directory_ = setup.directory();
    timeout_ = setup.timeout();
    for (const proto::SharedMemory& memory : setup.datasets()) {
      datasets_.push_back(std::make_shared<const Dataset>(
          open_shared_dataset(memory.fd(), FileDescriptor(memory.file() > 0 ? memory.file() : -1),
                              parse_json_text(memory.description(), kToWorker))));
      ::close(memory.fd());  // The mapping stays.
    }
  }

  bool train(const proto::Train& train) {
    WorkerTask task{.config = {},
                    .record = parse_run_record(train.record(), kToWorker),
                    .dataset = train.dataset(),
                    .until_epoch = train.until_epoch()};
    if (task.record.provenance.empty())
      task.record.provenance = provenance_;
    else
      provenance_ = task.record.provenance;
    task.config = recorded_config(task.record);
    task.config.index = train.index();
    if (!kind_) kind_ = make_kind_worker(task.config, datasets_);
    std::optional<RunOwner> owner;
    if (!train.owner().empty()) owner = RunOwner{directory_ / task.config.name / kLockFile, train.owner()};
    // Until the run has ended, also if the sweep's process is gone before.
    std::optional<FileDescriptor> lock(std::in_place, socket_.take_descriptor());
    EventSender sender(socket_);
    const ReportEvent report = [&sender](const RunEvent& event) { sender.send(event); };
    TrainedRun trained = kind_(task, report,
                               {.directory = directory_,
                                .make_engine = environment_.make_engine,
                                .clock = steady_seconds,
                                .stop_requested = [this] { return inbox_.stop_signal(); },
                                .threads = [this] { return inbox_.threads(); },
                                .timeout = timeout_,
                                .owner = std::move(owner)});
    lock.reset();
    // The sweep knows the rest.
    trained.record.config = nullptr;
    nlohmann::ordered_json added = nlohmann::ordered_json::object();
    for (const auto& [key, value] : trained.record.provenance.items())
      if (task.record.provenance.value(key, nlohmann::ordered_json()) != value) added[key] = value;
    trained.record.provenance = std::move(added);
    if (!trained.changes_epochs) {
      trained.record.epochs.clear();
      trained.record.untrained.reset();
    }
    report(trained);
    return trained.failure != RunFailure::kDevice;
  }

  MessageSocket& socket_;
  Inbox& inbox_;
  const WorkerEnvironment& environment_;
  std::filesystem::path directory_;  // of the sweep
  double timeout_ = 0;               // TrainerOptions::timeout
  std::vector<std::shared_ptr<const Dataset>> datasets_;
  KindWorker kind_;                    // of the first run: all are of one kind
  nlohmann::ordered_json provenance_;  // of the last run
};

// The engines of consecutive runs mostly allocate the same memory. If it went back to the kernel in between,
// the kernel would clear and map it page by page for each run, which takes a tenth of the time of short runs.
void keep_freed_memory() {
  constexpr int kMaxKept = 256 << 20;  // bytes
  ::mallopt(M_TRIM_THRESHOLD, kMaxKept);
  ::mallopt(M_MMAP_THRESHOLD, kMaxKept / 8);  // mallopt(3) allows at most 32 MiB.
}

int run_worker(int fd, const WorkerEnvironment& environment) {
  keep_freed_memory();
  // The parent decides when to stop, and sends a message.
  for (const int signal : kStopSignals) ::signal(signal, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  MessageSocket socket(fd);
  Inbox inbox(socket);
  Worker worker(socket, inbox, environment);
  while (const auto message = inbox.next()) {
    // Without destructors, as the state of this process is unknown. All files are written.
    if (!worker.handle(*message)) ::_exit(0);
  }
  return 0;
}

}  // namespace

int worker_main(int argc, const char* const* argv, const WorkerEnvironment& environment) {
  const std::optional<int> fd = argc == 3 ? number_in<int>(argv[2]) : std::nullopt;
  if (!fd) {
    fmt::print(stderr, "sweep worker: only the sweep itself starts workers\n");
    return 2;
  }
  constexpr const char* kOutOfMemory = "sweep worker: not enough memory\n";
  exit_when_out_of_memory(kOutOfMemory, kWorkerOutOfMemory);
  try {
    return run_worker(*fd, environment);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, kOutOfMemory);
    return kWorkerOutOfMemory;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sweep worker: {}\n", printable(error.what()));
    return 1;
  }
}

}  // namespace sweep
