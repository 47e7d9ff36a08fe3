#include "runmanager/sweep/worker.h"

#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/out_of_memory.h"
#include "core/base/printable.h"
#include "core/base/start_thread.h"
#include "core/base/wait_until.h"
#include "core/json/json_text.h"
#include "proto/worker.pb.h"
#include "runmanager/kinds/shared_dataset.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/sweep/make_run_kind.h"
#include "runmanager/sweep/message_socket.h"
#include "runmanager/text/json_output.h"
#include "runmanager/training/run_trainer.h"

namespace sweep {
namespace {

constexpr const char* kToWorker = "a message to a worker";

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The terminal is drawn as often; more messages would show nothing new.
constexpr double kSecondsBetweenMessages = 1.0 / 15;

// Receives messages in a thread of its own, so that a stop or a thread count reaches the run that the main
// thread trains. Everything else is queued for the main thread.
class Inbox {
 public:
  explicit Inbox(MessageSocket& socket)
      : socket_(socket), thread_(start_thread("receives messages", [this] { listen(); })) {}
  /// Ends the thread, also if the other end has not closed.
  ~Inbox() {
    {
      const std::lock_guard lock(mutex_);
      idle_ = true;
    }
    ::shutdown(socket_.fd(), SHUT_RD);  // wakes listen()
    thread_.join();
  }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  /// Waits for the next queued message; empty once the other end has closed.
  std::optional<proto::ToWorker> next() {
    std::unique_lock lock(mutex_);
    idle_ = true;
    wait_until(wake_, lock, [this] { return !queue_.empty() || closed_; });
    if (queue_.empty()) return std::nullopt;
    idle_ = false;
    proto::ToWorker message = std::move(queue_.front());
    queue_.pop_front();
    return message;
  }

  int stop_signal() const { return stop_; }
  int threads() const { return threads_; }

 private:
  void listen() {
    for (proto::ToWorker message; socket_.receive(message);) {
      if (message.has_stop_signal()) {
        stop_ = message.stop_signal();
        continue;
      }
      if (message.has_threads()) {
        threads_ = message.threads();
        continue;
      }
      // Here, not when the run begins: a later count may have come by then.
      if (message.has_train()) threads_ = message.train().threads();
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(message));
      wake_.notify_one();
    }
    const std::lock_guard lock(mutex_);
    closed_ = true;
    // The sweep is gone. Training on would only keep its directory locked, and the last checkpoint is enough
    // to resume from.
    if (!idle_) ::_exit(1);
    wake_.notify_one();
  }

  MessageSocket& socket_;
  std::atomic<int> stop_{0}, threads_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<proto::ToWorker> queue_;
  bool idle_ = true;  // the main thread waits in next()
  bool closed_ = false;
  std::thread thread_;  // last, because it uses all the others
};

// Sends the progress of a run to the sweep. Batches and phases are merged into a few messages a second.
class ProgressSender final : public TrainingObserver {
 public:
  explicit ProgressSender(MessageSocket& socket) : socket_(socket) {}

  void begin_run(const RunPlan& plan) override {
    proto::FromWorker message;
    proto::Begin& begin = *message.mutable_begin();
    begin.set_epochs(plan.epochs);
    begin.set_batches(plan.batches);
    begin.set_samples(plan.samples);
    begin.set_has_classes(plan.has_classes);
    begin.set_trained_epochs(plan.trained_epochs);
    for (const EpochRecord& epoch : plan.finished_epochs)
      begin.add_finished(compact_json_text(to_json(epoch)));
    epochs_ = plan.finished_epochs.size();
    socket_.send(message);
  }

  void begin_epoch(int epoch) override {
    if (batches_ > 0) send_batches();
    epoch_ = epoch;
    totals_ = {};
    batches_ = 0;
    is_new_ = true;
  }

  void batch(const Totals& totals, std::size_t count) override {
    totals_ += totals;
    batches_ += count;
    if (is_due()) send_batches();
  }

  void phase(std::string_view name) override {
    if (!is_due() && name == phase_) return;
    phase_ = name;
    proto::FromWorker message;
    message.set_phase(phase_);
    socket_.send(message);
  }

  void end_epoch(const EpochRecord& epoch) override {
    // The next epoch may have begun already; its batches then wait for their own message.
    if (epoch.epoch == epoch_) send_batches();
    proto::FromWorker message;
    message.set_epoch(compact_json_text(to_json(epoch)));
    ++epochs_;
    socket_.send(message);
  }

  /// How many epochs of the run were sent, with epoch 0.
  std::size_t epochs() const { return epochs_; }

 private:
  bool is_due() {
    const double now = steady_seconds();
    if (now < next_) return false;
    next_ = now + kSecondsBetweenMessages;
    return true;
  }

  void send_batches() {
    proto::FromWorker message;
    proto::Batches& batches = *message.mutable_batches();
    batches.set_epoch(epoch_);
    batches.set_begins_epoch(is_new_);
    batches.set_count(batches_);
    batches.set_loss(totals_.loss);
    batches.set_correct(totals_.correct);
    batches.set_samples(totals_.samples);
    socket_.send(message);
    is_new_ = false;
    totals_ = {};
    batches_ = 0;
    phase_.clear();  // It has ended, so the same one is another one.
  }

  MessageSocket& socket_;
  double next_ = 0;  // when the next message is due
  std::size_t epochs_ = 0;
  int epoch_ = 0;
  bool is_new_ = true;       // no batch of epoch_ was sent yet
  std::size_t batches_ = 0;  // not sent yet, like totals_
  Totals totals_;
  std::string phase_;
};

// Handles messages in the main thread: sets up the data sets once, then does run after run.
class Worker {
 public:
  Worker(MessageSocket& socket, Inbox& inbox, const WorkerEnvironment& environment)
      : socket_(socket), inbox_(inbox), environment_(environment) {}

  /// Returns whether another run can follow.
  bool handle(const proto::ToWorker& message) {
    proto::FromWorker answer;
    try {
      if (message.has_setup()) {
        set_up(message.setup());
        return true;
      }
      return train(message.train());
    } catch (const IoError& error) {
      answer.set_io_error(error.what());
    } catch (const std::bad_alloc&) {
      answer.set_failed("out of memory");
    } catch (const std::exception& error) {
      answer.set_failed(error.what());
    }
    socket_.send(answer);
    return false;  // The state of this process is unknown after such an error.
  }

 private:
  void set_up(const proto::Setup& setup) {
    directory_ = setup.directory();
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
    task.config = recorded_config(task.record);
    task.config.index = train.index();
    if (!kind_) kind_ = make_kind_worker(task.config, datasets_);
    std::optional<RunOwner> owner;
    if (!train.owner().empty()) owner = RunOwner{directory_ / task.config.name / kLockFile, train.owner()};
    // Until the run has ended, also if the sweep's process is gone before.
    std::optional<FileDescriptor> lock(std::in_place, socket_.take_descriptor());
    ProgressSender progress(socket_);
    TrainedRun trained = kind_->run(task, progress,
                                    {.directory = directory_,
                                     .make_engine = environment_.make_engine,
                                     .clock = steady_seconds,
                                     .stop_requested = [this] { return inbox_.stop_signal(); },
                                     .threads = [this] { return inbox_.threads(); },
                                     .owner = std::move(owner)});
    lock.reset();
    proto::FromWorker message;
    // A program that reports many steps has some of them joined.
    const bool were_sent =
        trained.record.epochs.size() + (trained.record.untrained ? 1 : 0) == progress.epochs();
    if (were_sent) {
      trained.record.epochs.clear();
      trained.record.untrained.reset();
    }
    message.mutable_end()->set_lacks_epochs(were_sent);
    message.mutable_end()->set_record(run_record_text(trained.record));
    message.mutable_end()->set_failure(static_cast<int>(trained.failure));
    socket_.send(message);
    return trained.failure != RunFailure::kDevice;
  }

  MessageSocket& socket_;
  Inbox& inbox_;
  const WorkerEnvironment& environment_;
  std::filesystem::path directory_;  // of the sweep
  std::vector<std::shared_ptr<const Dataset>> datasets_;
  std::unique_ptr<KindWorker> kind_;  // of the first run: all are of one kind
};

// The engines of consecutive runs mostly allocate the same memory. If it went back to the kernel in between,
// the kernel would clear and map it page by page for each run, which takes a tenth of the time of short runs.
void keep_freed_memory() {
  constexpr int kMaxKept = 256 << 20;  // bytes
  ::mallopt(M_TRIM_THRESHOLD, kMaxKept);
  ::mallopt(M_MMAP_THRESHOLD, kMaxKept / 8);  // mallopt(3) allows at most 32 MiB.
}

bool read_number(const char* text, int& number) {
  const char* end = text + std::strlen(text);
  return std::from_chars(text, end, number).ptr == end && end != text;
}

}  // namespace

int run_worker(int fd, const WorkerEnvironment& environment) {
  keep_freed_memory();
  // A terminal or batch system sends these to all processes of a job. The parent decides what to do and sends
  // a message.
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  MessageSocket socket(fd);
  Inbox inbox(socket);
  Worker worker(socket, inbox, environment);
  while (const auto message = inbox.next()) {
    // Without destructors, because the inbox's would wait for the socket to close. All files are written.
    if (!worker.handle(*message)) ::_exit(0);
  }
  return 0;
}

int worker_main(int argc, const char* const* argv, const WorkerEnvironment& environment) {
  int fd = -1;
  if (argc != 3 || !read_number(argv[2], fd)) {
    fmt::print(stderr, "sweep worker: only the sweep itself starts workers\n");
    return 2;
  }
  constexpr const char* kOutOfMemory = "sweep worker: not enough memory\n";
  exit_when_out_of_memory(kOutOfMemory, kWorkerOutOfMemory);
  try {
    return run_worker(fd, environment);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, kOutOfMemory);
    return kWorkerOutOfMemory;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sweep worker: {}\n", printable(error.what()));
    return 1;
  }
}

}  // namespace sweep
