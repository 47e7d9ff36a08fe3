#include "runmanager/sweep/worker.h"

#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
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
#include "proto/worker.pb.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/sweep/messages.h"
#include "runmanager/sweep/shared_dataset.h"
#include "runmanager/training/run_manager.h"
#include "runmanager/training/run_trainer.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// More often than the terminal is drawn says nothing new.
constexpr double kSecondsBetweenMessages = 1.0 / 15;

// Takes messages off the socket while a run is trained.
class Inbox {
 public:
  explicit Inbox(MessageSocket& socket) : socket_(socket), thread_([this] { listen(); }) {}
  ~Inbox() { thread_.join(); }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  /// Waits for the next message that is work; nothing once the other end has closed.
  std::optional<proto::ToWorker> next() {
    std::unique_lock lock(mutex_);
    idle_ = true;
    wake_.wait(lock, [this] { return !work_.empty() || closed_; });
    if (work_.empty()) return std::nullopt;
    idle_ = false;
    proto::ToWorker message = std::move(work_.front());
    work_.pop_front();
    return message;
  }

  int stop_signal() const { return stop_; }
  int threads() const { return threads_; }
  void set_threads(int threads) { threads_ = threads; }

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
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(message));
      wake_.notify_one();
    }
    const std::lock_guard lock(mutex_);
    closed_ = true;
    // Nobody is there any more who would want the run that is being trained.
    if (!idle_) ::_exit(1);
    wake_.notify_one();
  }

  MessageSocket& socket_;
  std::atomic<int> stop_{0}, threads_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<proto::ToWorker> work_;
  bool idle_ = true, closed_ = false;
  std::thread thread_;  // last: it uses all the others
};

// Sends what happens in a run, as often as somebody could want to see it.
class Reporter final : public TrainingObserver {
 public:
  Reporter(MessageSocket& socket, const RunManager& manager) : socket_(socket), manager_(manager) {}

  void begin_run(const RunPlan& plan) override {
    proto::FromWorker message;
    proto::Begin& begin = *message.mutable_begin();
    begin.set_epochs(plan.epochs);
    begin.set_batches(plan.batches);
    begin.set_samples(plan.samples);
    for (const EpochRecord& epoch : manager_.records().back().epochs)
      begin.add_finished(compact_json_text(to_json(epoch)));
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
    totals_.loss += totals.loss;
    totals_.correct += totals.correct;
    totals_.samples += totals.samples;
    batches_ += count;
    if (is_due()) send_batches();
  }

  void phase(std::string_view what) override {
    if (!is_due() && what == phase_) return;
    phase_ = what;
    proto::FromWorker message;
    message.set_phase(phase_);
    socket_.send(message);
  }

  void end_epoch(const EpochRecord& epoch) override {
    if (epoch.epoch == epoch_) send_batches();
    proto::FromWorker message;
    message.set_epoch(compact_json_text(to_json(epoch)));
    socket_.send(message);
  }

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
  }

  MessageSocket& socket_;
  const RunManager& manager_;
  double next_ = 0;
  int epoch_ = 0;
  bool is_new_ = true;
  std::size_t batches_ = 0;
  Totals totals_;
  std::string phase_;
};

class Worker {
 public:
  Worker(MessageSocket& socket, Inbox& inbox, const WorkerEnvironment& environment)
      : socket_(socket), inbox_(inbox), environment_(environment) {}

  /// Returns whether another run can follow.
  bool handle(const proto::ToWorker& message) {
    if (message.has_setup()) {
      set_up(message.setup());
      return true;
    }
    proto::FromWorker answer;
    try {
      return train(message.train());
    } catch (const IoError& error) {
      answer.set_io_error(error.what());
    } catch (const std::bad_alloc&) {
      answer.set_failed("out of memory");
    } catch (const std::exception& error) {
      answer.set_failed(error.what());
    }
    socket_.send(answer);
    return false;  // What such an end has left behind is not known.
  }

 private:
  void set_up(const proto::Setup& setup) {
    for (const proto::SharedSet& set : setup.datasets()) {
      datasets_.push_back(
          std::make_shared<const Dataset>(open_shared_dataset(set.fd(), Json::parse(set.description()))));
      ::close(set.fd());  // The mapping stays.
    }
    manager_.emplace(RunManagerOptions{.directory = setup.directory(),
                                       .name = setup.name(),
                                       .keys = {},
                                       .provenance = {},
                                       .clock = steady_seconds,
                                       .layout_run = setup.layout_run(),
                                       .survives = Survives::kKill});
  }

  bool train(const proto::Train& train) {
    const RunRecord record = run_record_from_json(Json::parse(train.record()), "a message to a worker");
    RunConfig config = recorded_config(record);
    config.index = train.index();
    PreparedRun run;
    run.config = &config;
    run.device = parse_device(record.device);
    run.data = datasets_.at(train.dataset());
    run.network = network_of(config, *run.data);
    if (!config.init.empty()) run.weights = load_weights(config.init, *run.network);
    run.provenance = record.provenance;
    run.jobs = record.jobs;
    inbox_.set_threads(train.threads());
    manager_->forget();
    manager_->expect({record});
    Reporter reporter(socket_, *manager_);
    const bool usable = train_run(run, *manager_, reporter,
                                  {.make_engine = environment_.make_engine,
                                   .clock = steady_seconds,
                                   .stop_requested = [this] { return inbox_.stop_signal(); },
                                   .threads = [this] { return inbox_.threads(); }});
    proto::FromWorker message;
    message.mutable_end()->set_record(compact_json_text(to_json(manager_->records().back())));
    message.mutable_end()->set_usable(usable);
    socket_.send(message);
    return usable;
  }

  // Runs of a sweep mostly share one.
  std::shared_ptr<const Network> network_of(const RunConfig& config, const Dataset& data) {
    std::string key = config.resolved.at("network").dump() + to_string(data.shape);
    if (key != network_key_) {
      network_ = std::make_shared<const Network>(config.network, data.shape);
      network_key_ = std::move(key);
    }
    return network_;
  }

  MessageSocket& socket_;
  Inbox& inbox_;
  const WorkerEnvironment& environment_;
  std::vector<std::shared_ptr<const Dataset>> datasets_;
  std::optional<RunManager> manager_;
  std::shared_ptr<const Network> network_;
  std::string network_key_;
};

// Engines of a sweep mostly want the same memory, one after another. Given back to the kernel in between,
// each would have it cleared and mapped page by page again, which for short runs is a tenth of their time.
void keep_freed_memory() {
  constexpr int kMostKept = 256 << 20;  // bytes
  ::mallopt(M_TRIM_THRESHOLD, kMostKept);
  ::mallopt(M_MMAP_THRESHOLD, kMostKept / 8);  // at most 32 MiB, says mallopt(3)
}

bool read_number(const char* text, int& number) {
  const char* end = text + std::strlen(text);
  return std::from_chars(text, end, number).ptr == end && end != text;
}

}  // namespace

int run_worker(int fd, int parent, const WorkerEnvironment& environment) {
  keep_freed_memory();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (parent != 0 && ::getppid() != parent) return 1;  // It died before this was asked for.
  // They go to all processes of a terminal or a job; the parent tells what to do.
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) ::signal(signal, SIG_IGN);
  MessageSocket socket(fd);
  Inbox inbox(socket);
  Worker worker(socket, inbox, environment);
  while (const auto message = inbox.next()) {
    if (!worker.handle(*message)) ::_exit(0);  // The inbox still waits; everything is written.
  }
  return 0;
}

int worker_main(int argc, const char* const* argv, const WorkerEnvironment& environment) {
  int fd = -1, parent = 0;
  if (argc != 4 || !read_number(argv[2], fd) || !read_number(argv[3], parent)) {
    fmt::print(stderr, "sweep worker: only the sweep itself starts workers\n");
    return 2;
  }
  constexpr const char* kOutOfMemory = "sweep worker: not enough memory\n";
  exit_when_out_of_memory(kOutOfMemory, kWorkerOutOfMemory);
  try {
    return run_worker(fd, parent, environment);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, kOutOfMemory);
    return kWorkerOutOfMemory;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sweep worker: {}\n", error.what());
    return 1;
  }
}

}  // namespace sweep
