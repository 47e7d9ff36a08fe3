#include "core/parallel/replicated_engine.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <optional>
#include <thread>

#include "core/base/threads.h"
#include "core/engine/engine_checks.h"
#include "core/parallel/communicator.h"
#include "core/parallel/replica_messages.h"

namespace sweep {
namespace {

// What rank 0 tells the others.
struct ReplicaCommand {
  enum class Kind : std::uint32_t {
    kMakeEngine,
    kTrain,
    kEvaluate,
    kTakeTotals,
    kSetArray,
    kSetStepCount,
    kEndEngine,
    kEndProcess
  } kind = Kind::kEndProcess;
  bool counts = true;       // of kEvaluate
  int result = 0;           // of kEndProcess
  StepValues values = 0;    // of kTrain
  EngineArray array = {};   // of kSetArray
  std::int64_t steps = 0;   // of kSetStepCount
  std::uint64_t bytes = 0;  // of kMakeEngine
  BatchKind kind_of_batch = {};
  const void* batch = nullptr;  // if ranks share memory
  void* outputs = nullptr;      // [samples][outputs], likewise; nullptr: none are wanted
};
using Kind = ReplicaCommand::Kind;

void send(Communicator& group, ReplicaCommand command) { group.broadcast(bytes_of_value(command)); }

ReplicaCommand receive(Communicator& group) {
  ReplicaCommand command;
  group.broadcast(bytes_of_value(command));
  return command;
}

// Calls `body`; an error is passed to the other ranks, which wait for this one.
template <class Body>
auto or_abort(Communicator& group, Body body) {
  try {
    return body();
  } catch (const CommunicatorError&) {
    throw;  // All ranks have it.
  } catch (const ReplicaError&) {
    throw;  // So with this.
  } catch (const std::exception& error) {
    group.abort(reason_of(error));
    throw;
  }
}

// What every rank does with its part of a batch.
void work_on(const Batch& batch, std::span<float> outputs, const ReplicaCommand& command, Engine& engine) {
  if (command.kind == Kind::kTrain) return engine.train(batch, command.values);
  engine.evaluate(batch, outputs, command.counts);
}

// Another rank than 0: does what rank 0 says.
class Replica {
 public:
  Replica(Communicator& group, const Network& network, const EngineOptions& options, const MakeReplica& make)
      : group_(group), network_(network), engine_(make(network, options, group)), sent_(network) {
    group.barrier();
  }

  /// Until rank 0 ends the engine.
  void serve() {
    try {
      for (ReplicaCommand command = receive(group_); command.kind != Kind::kEndEngine;
           command = receive(group_))
        execute(command);
    } catch (...) {
      engine_->abandon_group();
      throw;
    }
  }

 private:
  void execute(const ReplicaCommand& command) {
    switch (command.kind) {
      case Kind::kTrain:
      case Kind::kEvaluate:
        return work_on(batch_of(command), outputs_of(command), command, *engine_);
      case Kind::kTakeTotals:
        engine_->take_totals();
        return;
      case Kind::kSetArray:
        return set_array(command.array);
      case Kind::kSetStepCount:
        return engine_->set_step_count(command.steps);
      default:
        return;
    }
  }

  Batch batch_of(const ReplicaCommand& command) {
    if (group_.shares_memory()) return *static_cast<const Batch*>(command.batch);
    const BatchKind& kind = command.kind_of_batch;
    return sent_.exchange(group_, kind, engine_->sample_shares(kind.samples, command.kind == Kind::kTrain),
                          nullptr);
  }

  std::span<float> outputs_of(const ReplicaCommand& command) {
    if (command.outputs == nullptr) return {};
    const std::size_t count = command.kind_of_batch.samples * element_count(network_.output());
    if (group_.shares_memory()) return {static_cast<float*>(command.outputs), count};
    outputs_.resize(count);
    return outputs_;
  }

  void set_array(const EngineArray& which) {
    std::vector<float> values(array_size(which, network_));
    group_.broadcast(bytes_of(std::span(values)));
    engine_->set_array(which, values);
  }

  Communicator& group_;
  const Network& network_;
  const std::unique_ptr<ReplicaEngine> engine_;
  SentBatch sent_;
  std::vector<float> outputs_;
};

EngineOptions options_of_one(const EngineOptions& options) {
  EngineOptions one = options;
  const int threads = options.threads > 0 ? options.threads : available_cores();
  one.threads = std::max(1, threads / options.parallel.data);
  return one;
}

// What the ranks are called, before their number.
std::string name_of(const EngineOptions& options) {
  if (options.device.index > 0 || options.parallel.has_stages()) return "rank ";
  return options.device.type == DeviceType::kCpu ? "cpu:" : "cuda:";
}

// A thread of the CPU that does not come computes a larger part, or has failed, and the others were told.
double deadline_of(const EngineOptions& options) {
  return options.device.type == DeviceType::kCpu ? std::numeric_limits<double>::infinity()
                                                 : kCommunicatorDeadline;
}

// Rank 0. What is wrong with a call is found here, before the others hear of it.
class ReplicatedEngine final : public Engine {
 public:
  // For threads: these are their ends of the group.
  ReplicatedEngine(const Network& network, const EngineOptions& options, const MakeReplica& make,
                   std::vector<std::unique_ptr<Communicator>> ends)
      : network_(network),
        options_(options_of_one(options)),
        ends_(std::move(ends)),
        group_(*ends_.front()),
        sent_(network) {
    try {
      for (std::size_t rank = 1; rank < ends_.size(); ++rank) {
        threads_.push_back(
            start_thread("trains as " + name_of(options) + std::to_string(rank),
                         [this, make, &group = *ends_[rank]] { serve_on_thread(group, make); }));
      }
      make_own(make);
    } catch (const std::exception& error) {
      group_.abort(error.what());
      end();
      throw;
    }
  }
  // For processes: the others are in serve_replicas().
  ReplicatedEngine(const Network& network, const EngineOptions& options, Communicator& group,
                   const MakeReplica& make)
      : network_(network), options_(options), group_(group), sent_(network) {
    std::vector<std::byte> message = encode_engine(network, options);
    send(group, {.kind = Kind::kMakeEngine, .bytes = message.size()});
    group.broadcast(message);
    make_own(make);
  }
  ~ReplicatedEngine() override { end(); }
  ReplicatedEngine(const ReplicatedEngine&) = delete;
  ReplicatedEngine& operator=(const ReplicatedEngine&) = delete;

  Device device() const override { return own_->device(); }

  void train(const Batch& batch, const StepValues& values) override {
    optimizer_of_step(options_.optimizer, values);  // throws if it cannot be
    share(batch, {}, {.kind = Kind::kTrain, .values = values});
  }
  void evaluate(const Batch& batch, std::span<float> outputs, bool counts) override {
    share(batch, outputs, {.kind = Kind::kEvaluate, .counts = counts});
  }

  std::vector<LayerProfile> profile(const Batch& batch) override { return own_->profile(batch); }
  std::string kernels() const override { return own_->kernels(); }
  Totals take_totals() override {
    const auto begin = std::chrono::steady_clock::now();
    send(group_, {.kind = Kind::kTakeTotals});
    count_sending(begin);
    return or_abort(group_, [&] { return own_->take_totals(); });
  }
  std::int64_t batches_between_totals() const override { return own_->batches_between_totals(); }

  std::optional<double> take_communication_seconds() override {
    const double sending = std::exchange(sending_seconds_, 0.0);
    // A GPU works while its host tells the others of the next batch.
    const bool is_waited_for = own_->device().type == DeviceType::kCpu;
    return own_->take_communication_seconds().value_or(0) + (is_waited_for ? sending : 0);
  }

  std::vector<float> array(const EngineArray& which) const override { return own_->array(which); }
  void set_array(const EngineArray& which, std::span<const float> values) override {
    own_->set_array(which, values);
    send(group_, {.kind = Kind::kSetArray, .array = which});
    const auto bytes = std::as_bytes(values);  // which broadcast() does not change here
    group_.broadcast({const_cast<std::byte*>(bytes.data()), bytes.size()});
  }

  std::vector<std::string> optimizer_arrays() const override { return own_->optimizer_arrays(); }
  std::int64_t step_count() const override { return own_->step_count(); }
  void set_step_count(std::int64_t steps) override {
    own_->set_step_count(steps);
    send(group_, {.kind = Kind::kSetStepCount, .steps = steps});
  }

 private:
  // Returns when all engines are there, or one has failed.
  void make_own(const MakeReplica& make) {
    own_ = or_abort(group_, [&] { return make(network_, options_, group_); });
    group_.barrier();
  }

  void serve_on_thread(Communicator& group, const MakeReplica& make) noexcept {
    try {
      or_abort(group, [&] { Replica(group, network_, options_, make).serve(); });
    } catch (const std::exception&) {
      // Told to the others.
    }
  }

  // To be called before the others' engines are gone. Also ends this rank's own: engines may leave their
  // devices' group together, each waiting for all, so this rank must not wait for the others first.
  void end() noexcept {
    try {
      if (own_) send(group_, {.kind = Kind::kEndEngine});
    } catch (const std::exception&) {
      // They have ended with an error that was told.
      own_->abandon_group();
    }
    own_.reset();
    join();
  }

  void join() noexcept {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  // Lets the other ranks do their part of the batch, and this one its own. After an error, returns only when
  // the others do not use the caller's batch and outputs any more: threads have ended then.
  void share(const Batch& batch, std::span<float> outputs, ReplicaCommand command) {
    const bool trains = command.kind == Kind::kTrain;
    check_batch(batch, network_, options_.batch_size, options_.loss);
    check_outputs(outputs, batch, network_, command.counts);
    if (batch.size() == 0) return;
    const auto begin = std::chrono::steady_clock::now();
    command.kind_of_batch = {batch.size(), batch.samples.index() == 1, batch.targets.index() == 1};
    command.batch = &batch;
    command.outputs = outputs.data();
    try {
      send(group_, command);
      or_abort(group_, [&] {
        if (!group_.shares_memory())
          sent_.exchange(group_, command.kind_of_batch, own_->sample_shares(batch.size(), trains), &batch);
        if (trains) count_sending(begin);
        work_on(batch, outputs, command, *own_);
      });
    } catch (const std::exception&) {
      join();
      throw;
    }
  }

  void count_sending(std::chrono::steady_clock::time_point begin) {
    sending_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  const Network network_;
  const EngineOptions options_;
  const std::vector<std::unique_ptr<Communicator>> ends_;  // of threads, this one's first
  Communicator& group_;
  std::unique_ptr<ReplicaEngine> own_;
  SentBatch sent_;
  std::vector<std::thread> threads_;
  double sending_seconds_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_threaded_engine(const Network& network, const EngineOptions& options,
                                             const MakeReplica& make) {
  return std::make_unique<ReplicatedEngine>(
      network, options, make,
      make_thread_group(options.parallel.data, name_of(options), deadline_of(options)));
}

std::unique_ptr<Engine> make_group_engine(const Network& network, const EngineOptions& options,
                                          Communicator& group, const MakeReplica& make) {
  return std::make_unique<ReplicatedEngine>(network, options, group, make);
}

int serve_replicas(Communicator& group, const MakeReplica& make) {
  return or_abort(group, [&] {
    for (;;) {
      const ReplicaCommand command = receive(group);
      if (command.kind == Kind::kEndProcess) return command.result;
      if (command.kind != Kind::kMakeEngine) continue;
      std::vector<std::byte> message(command.bytes);
      group.broadcast(message);
      const SentEngine sent = decode_engine(message);
      try {
        Replica(group, sent.network, sent.options, make).serve();
      } catch (const ReplicaError&) {
        // Rank 0 has it, too, and goes on without this engine.
      }
    }
  });
}

void end_replicas(Communicator& group, int result) {
  send(group, {.kind = Kind::kEndProcess, .result = result});
}

}  // namespace sweep
