#include "runmanager/sweep/run_scheduler.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "proto/worker.pb.h"
#include "runmanager/records/run_files.h"
#include "runmanager/training/stop_signals.h"

namespace sweep {
namespace {

constexpr int kPollMilliseconds = 100;
constexpr double kStepsBeforeStall = 10;
constexpr std::size_t kGapsKept = 100;
constexpr double kStallsBeforeFirstStep = 5;
// Messages of a lost worker end somewhere; its log says more.
constexpr std::size_t kLogLinesShown = 3;

// A place for one run at a time, with the worker that trains there.
struct Slot {
  std::unique_ptr<WorkerProcess> worker;
  const ScheduledRun* job = nullptr;  // nullptr: idle
  double begin = 0;                   // of the job
  double last_sign = 0;               // when the worker was last heard of
  std::vector<double> gaps;           // between its signs of life in training
  int threads = 0;
  bool asked_to_stop = false;
};

// The end of the run's log, to say what it did last.
std::string log_tail(const std::filesystem::path& run) {
  std::string text;
  try {
    text = read_file(run / kLogFile);
  } catch (const DataError&) {
    return "";
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::size_t begin = text.size();
  for (std::size_t lines = 0; lines < kLogLinesShown && begin != std::string::npos && begin > 0; ++lines)
    begin = text.rfind('\n', begin - 1);
  begin = begin == std::string::npos ? 0 : begin;
  return text.empty() ? "" : "\nlog.txt ends with:\n" + text.substr(begin + (text[begin] == '\n'));
}

std::string last_epoch_text(const RunRecord& record) {
  return record.epochs.empty() ? "before its first epoch was finished"
                               : fmt::format("after epoch {}", record.epochs.back().epoch);
}

EpochRecord epoch_of(const std::string& json) {
  return epoch_record_from_json(nlohmann::ordered_json::parse(json), "a worker's message");
}

class Scheduler {
 public:
  Scheduler(const std::vector<ScheduledRun>& runs, const std::vector<SharedDataset>& datasets,
            const SchedulerOptions& options, SweepBook& book)
      : options_(options), book_(book), datasets_(datasets), attempts_(runs.size()) {
    for (const ScheduledRun& run : runs) waiting_.push_back(&run);
    first_ = runs.data();
    jobs_ = options.jobs > 0 ? options.jobs : automatic_jobs(runs.size(), options.cores);
    slots_.resize(std::min(static_cast<std::size_t>(jobs_), std::max<std::size_t>(1, runs.size())));
  }

  void run() {
    last_look_ = options_.clock();
    for (;;) {
      if (stop_ == 0) stop_if(options_.stop_requested());
      if (stop_ == 0) start_jobs();
      if (busy() == 0) break;
      book_.save_if_due();  // while the workers train
      wait_for_messages();
      for (Slot& slot : slots_) {
        if (slot.job != nullptr) take_messages(slot);
      }
      check_deadlines();
    }
    dismiss_workers();
  }

 private:
  std::size_t busy() const {
    return static_cast<std::size_t>(
        std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.job != nullptr; }));
  }

  // How many of the cores a slot has for its run while `active` are trained.
  int threads_of(const Slot& slot, std::size_t active) const {
    if (options_.threads > 0) return options_.threads;
    const auto share = static_cast<int>(active);
    const auto position = static_cast<int>(&slot - slots_.data());
    return std::max(1, options_.cores / share + (position < options_.cores % share ? 1 : 0));
  }

  // With --jobs auto a GPU has one run at a time: two would only take turns.
  bool device_is_free(const Device& device) const {
    if (options_.jobs > 0 || device.type == DeviceType::kCpu) return true;
    return std::none_of(slots_.begin(), slots_.end(), [&device](const Slot& slot) {
      return slot.job != nullptr && slot.job->prepared.device == device;
    });
  }

  void start_jobs() {
    for (Slot& slot : slots_) {
      if (slot.job != nullptr) continue;
      const auto next = std::find_if(waiting_.begin(), waiting_.end(), [this](const ScheduledRun* run) {
        return device_is_free(run->prepared.device);
      });
      if (next == waiting_.end()) break;
      const ScheduledRun* job = *next;
      waiting_.erase(next);
      start(slot, *job);
    }
    share_cores();
  }

  // Runs that are still trained when no others wait get the cores of those that have ended.
  void share_cores() {
    if (!waiting_.empty()) return;
    const std::size_t active = busy();
    for (Slot& slot : slots_) {
      if (slot.job == nullptr) continue;
      const int threads = threads_of(slot, active);
      if (threads <= slot.threads) continue;
      slot.threads = threads;
      proto::ToWorker message;
      message.set_threads(threads);
      slot.worker->socket().send(message);
    }
  }

  void start(Slot& slot, const ScheduledRun& job) {
    options_.check_directory();  // A worker would make it again, without what was there.
    const std::size_t active = std::min(slots_.size(), busy() + waiting_.size() + 1);
    if (!slot.worker) {
      slot.worker = std::make_unique<WorkerProcess>(WorkerProcess::start(options_.worker));
      slot.worker->socket().send(setup());
    }
    slot.job = &job;
    slot.threads = threads_of(slot, active);
    slot.begin = slot.last_sign = options_.clock();
    slot.gaps.clear();
    slot.asked_to_stop = false;
    book_.begin_run(job.run);
    RunRecord record = book_.record(job.run);
    record.status = RunStatus::kRunning;
    record.jobs = static_cast<int>(active);
    record.epochs.clear();
    record.error.reset();
    proto::ToWorker message;
    proto::Train& train = *message.mutable_train();
    train.set_index(job.run);
    train.set_dataset(job.dataset);
    train.set_threads(slot.threads);
    train.set_record(compact_json_text(to_json(record)));
    book_.manager().update(std::move(record));
    // A worker that is already gone is noticed when its messages are taken.
    slot.worker->socket().send(message);
  }

  proto::ToWorker setup() const {
    proto::ToWorker message;
    proto::Setup& setup = *message.mutable_setup();
    setup.set_directory(book_.manager().directory().string());
    setup.set_name(book_.manager().directory().filename().string());
    setup.set_layout_run(book_.manager().records().front().name);
    for (const SharedDataset& dataset : datasets_) {
      proto::SharedSet& set = *setup.add_datasets();
      set.set_fd(dataset.fd());
      set.set_description(compact_json_text(dataset.description()));
    }
    return message;
  }

  void wait_for_messages() {
    std::vector<pollfd> descriptors;
    for (Slot& slot : slots_) {
      if (slot.job != nullptr) descriptors.push_back({slot.worker->socket().fd(), POLLIN, 0});
    }
    ::poll(descriptors.data(), descriptors.size(), kPollMilliseconds);
    const double now = options_.clock();
    // A sweep that was stopped itself, by Ctrl-Z or a laptop's lid, has not heard its workers either.
    const double lost = now - last_look_ - 1e-3 * kPollMilliseconds;
    if (lost > 1) {
      for (Slot& slot : slots_) {
        slot.begin += lost;
        slot.last_sign += lost;
      }
    }
    last_look_ = now;
  }

  void take_messages(Slot& slot) {
    auto arrived = MessageSocket::Arrived::kMessage;
    try {
      while (slot.job != nullptr && slot.worker) {
        proto::FromWorker message;
        arrived = slot.worker->socket().poll(message);
        if (arrived != MessageSocket::Arrived::kMessage) break;
        handle(slot, message);
      }
    } catch (const DataError& error) {
      slot.worker->kill();
      lose(slot, error.what());
      return;
    } catch (const nlohmann::json::exception& error) {
      slot.worker->kill();
      lose(slot, fmt::format("its worker sent what is no message: {}", error.what()));
      return;
    }
    if (arrived == MessageSocket::Arrived::kEnd && slot.job != nullptr) {
      lose(slot, fmt::format("its worker was lost: {}", slot.worker->how_it_ended()));
    }
  }

  void handle(Slot& slot, const proto::FromWorker& message) {
    const double now = options_.clock();
    const std::size_t run = slot.job->run;
    TrainingObserver& observer = book_.progress().run(run + 1);
    switch (message.content_case()) {
      case proto::FromWorker::kBegin:
        begin(slot, message.begin(), observer);
        break;
      case proto::FromWorker::kBatches: {
        const proto::Batches& batches = message.batches();
        if (slot.gaps.size() == kGapsKept) slot.gaps.erase(slot.gaps.begin());
        slot.gaps.push_back(now - slot.last_sign);
        if (batches.begins_epoch()) observer.begin_epoch(batches.epoch());
        observer.batch({.loss = batches.loss(), .correct = batches.correct(), .samples = batches.samples()},
                       batches.count());
        break;
      }
      case proto::FromWorker::kPhase:
        observer.phase(message.phase());
        break;
      case proto::FromWorker::kEpoch: {
        const EpochRecord epoch = epoch_of(message.epoch());
        book_.end_epoch(run, epoch);
        observer.end_epoch(epoch);
        break;
      }
      case proto::FromWorker::kEnd:
        book_.manager().update(run_record_from_json(nlohmann::ordered_json::parse(message.end().record()),
                                                    "a worker's message"));
        if (!message.end().usable()) slot.worker.reset();
        end_job(slot);
        break;
      case proto::FromWorker::kFailed:
        slot.worker.reset();
        lose(slot, message.failed());
        break;
      case proto::FromWorker::kIoError:
        if (!only_its_directory_is_gone(slot)) throw IoError(message.io_error());
        lose(slot, fmt::format("its directory was removed while it was trained ({})", message.io_error()));
        break;
      case proto::FromWorker::CONTENT_NOT_SET:
        throw DataError("its worker sent a message without content");
    }
    slot.last_sign = now;
  }

  void begin(const Slot& slot, const proto::Begin& begin, TrainingObserver& observer) {
    const std::size_t run = slot.job->run;
    RunRecord record = book_.record(run);
    for (const std::string& epoch : begin.finished()) record.epochs.push_back(epoch_of(epoch));
    const auto finished = static_cast<int>(record.epochs.size());
    book_.manager().update(std::move(record));
    observer.begin_run({.number = run + 1,
                        .name = slot.job->prepared.config->name,
                        .epochs = begin.epochs(),
                        .batches = begin.batches(),
                        .samples = begin.samples(),
                        .first_epoch = finished});
  }

  // Somebody did not want this run; the others have what they need.
  bool only_its_directory_is_gone(const Slot& slot) const {
    const std::filesystem::path run = book_.manager().directory() / slot.job->prepared.config->name;
    std::error_code error;
    if (std::filesystem::exists(run, error) || error) return false;
    options_.check_directory();
    return true;
  }

  // The run's worker is gone before the run has ended.
  void lose(Slot& slot, const std::string& why) {
    slot.worker.reset();
    const PreparedRun& prepared = slot.job->prepared;
    RunRecord record = book_.record(slot.job->run);
    record.status = slot.asked_to_stop ? RunStatus::kInterrupted : RunStatus::kFailed;
    record.error = fmt::format("{} {}{}", why, last_epoch_text(record),
                               log_tail(book_.manager().directory() / prepared.config->name));
    record.run_seconds = options_.clock() - slot.begin;
    book_.manager().conclude_run(describe_run(*prepared.config, prepared.device, record.jobs),
                                 std::move(record));
    end_job(slot);
  }

  void end_job(Slot& slot) {
    const ScheduledRun* job = std::exchange(slot.job, nullptr);
    const RunRecord& record = book_.record(job->run);
    int& attempts = attempts_[static_cast<std::size_t>(job - first_)];
    const bool failed = record.status == RunStatus::kFailed;
    const bool diverged = failed && record.error && record.error->starts_with(kDiverged);
    if (failed && !diverged && stop_ == 0 && attempts < options_.retry) {
      ++attempts;
      waiting_.push_back(job);
      book_.progress().message(fmt::format("{} failed and will be tried again ({} of {}): {}", record.name,
                                           attempts, options_.retry, record.error.value_or("")));
      return;
    }
    book_.end_run(job->run);
    if (failed && options_.fail_fast) stop_if(kOtherRunFailed);
  }

  void stop_if(int signal) {
    if (signal == 0 || stop_ != 0) return;
    stop_ = signal;
    stop_begin_ = options_.clock();
    for (Slot& slot : slots_) {
      if (slot.job == nullptr) continue;
      slot.asked_to_stop = true;
      proto::ToWorker message;
      message.set_stop_signal(signal);
      slot.worker->socket().send(message);
    }
  }

  // How long a worker may be silent: by far longer than it has been so far.
  double patience(const Slot& slot) const {
    // A device may compile kernels first, and then train many batches before it says anything.
    if (slot.gaps.empty()) return kStallsBeforeFirstStep * options_.stall_seconds;
    std::vector<double> gaps = slot.gaps;
    const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
    std::nth_element(gaps.begin(), middle, gaps.end());
    return std::max(options_.stall_seconds, kStepsBeforeStall * *middle);
  }

  void check_deadlines() {
    const double now = options_.clock();
    for (Slot& slot : slots_) {
      if (slot.job == nullptr) continue;
      if (stop_ != 0) {
        if (now - stop_begin_ < options_.stop_seconds) continue;
        slot.worker->kill();
        lose(slot, fmt::format("stopped by {}, to which its worker did not answer,", signal_name(stop_)));
      } else if (options_.timeout > 0 && now - slot.begin > options_.timeout) {
        slot.worker->kill();
        lose(slot, fmt::format("timeout: it took longer than {:g} s and was ended", options_.timeout));
      } else if (now - slot.last_sign > options_.stall_seconds && now - slot.last_sign > patience(slot)) {
        slot.worker->kill();
        lose(slot, fmt::format("hanging: no sign of life for {:.0f} s; its worker was ended",
                               now - slot.last_sign));
      }
    }
  }

  void dismiss_workers() {
    // Closing the connection would do, too, but this way all of them end at the same time.
    for (Slot& slot : slots_) slot.worker.reset();
  }

  const SchedulerOptions& options_;
  SweepBook& book_;
  const std::vector<SharedDataset>& datasets_;
  int jobs_ = 1;
  const ScheduledRun* first_ = nullptr;
  std::vector<int> attempts_;  // beyond the first, per run
  std::deque<const ScheduledRun*> waiting_;
  std::vector<Slot> slots_;
  int stop_ = 0;
  double stop_begin_ = 0;
  double last_look_ = 0;
};

}  // namespace

void train_in_workers(const std::vector<ScheduledRun>& runs, const std::vector<SharedDataset>& datasets,
                      const SchedulerOptions& options, SweepBook& book) {
  if (!runs.empty()) Scheduler(runs, datasets, options, book).run();
}

int automatic_jobs(std::size_t runs, int cores) {
  return std::max(1, static_cast<int>(std::min(runs, static_cast<std::size_t>(std::max(1, cores)))));
}

}  // namespace sweep
