// One of several CUDA devices that train a network together.
//
// A batch is cut into kGradientParts parts, and a rank computes some of them. The devices exchange the
// gradients of all parts, and before them the sums that batch normalization needs of each; every device adds
// them up in order and takes the whole step. So the bits depend neither on the number of devices, nor on the
// way in which NCCL passes on what it never adds up.
#include <algorithm>
#include <chrono>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/engine/engine_checks.h"
#include "core/kernels/cuda/cuda_engine.h"
#include "core/kernels/cuda/device_runner.h"
#include "core/kernels/cuda/group_exchange.h"
#include "core/kernels/cuda/libraries/nccl.h"
#include "core/kernels/cuda/rank_device.h"

namespace sweep {
namespace {

using cuda::Array;
using cuda::DeviceTotals;
using cuda::GradientParts;
using cuda::kGradientParts;
using cuda::SampleRange;
using cuda::Task;

static_assert(kMaxCudaReplicas == kGradientParts);

// The same parts in every batch, so that sums over an epoch are the same ranks' too. Ranks behind the last
// part have none, which no network is trained with.
int first_part(int rank, int size) { return kGradientParts * rank / size; }

GradientParts parts_of(const EngineOptions& options, const Communicator& group) {
  return {.turns = cuda::turns_of(options),
          .count = kGradientParts,
          .first = first_part(group.rank(), group.size()),
          .end = first_part(group.rank() + 1, group.size()),
          .most = (kGradientParts + group.size() - 1) / group.size()};
}

// And of the rank behind the last.
std::vector<int> first_parts(int size) {
  std::vector<int> parts;
  for (int rank = 0; rank <= size; ++rank) parts.push_back(first_part(rank, size));
  return parts;
}

// Rank 0 chooses the kernels, by measuring; the others use them.
std::string send_kernels(Communicator& group, std::string kernels) {
  std::uint64_t size = kernels.size();
  group.broadcast(std::as_writable_bytes(std::span(&size, 1)));
  kernels.resize(size);
  group.broadcast(std::as_writable_bytes(std::span(kernels.data(), kernels.size())));
  return kernels;
}

cuda::DeviceGroupId send_id(Communicator& group) {
  cuda::DeviceGroupId id{};
  if (group.rank() == 0) id = cuda::DeviceGroup::make_id();
  group.broadcast(id);
  return id;
}

// After an error of the devices' exchange. Threads each notice it; processes end, as where the group has it.
void end_processes(Communicator& group, const CommunicatorError& error) {
  if (!group.shares_memory()) group.abort_for_lost_rank(error.what());
}

class CudaReplica final : public ReplicaEngine {
 public:
  CudaReplica(const Network& network, const EngineOptions& options, Communicator& group)
      : network_(network),
        options_(options),
        group_(group),
        device_(cuda::device_of_rank(options, group)),
        parts_(parts_of(options, group)),
        kernels_(group.rank() == 0 ? options.kernels : send_kernels(group, {})),
        runner_(network_, program_options(), fed_samples(), options.placement),
        devices_((join(), send_id(group)), group.rank(), group.size(), group.deadline()),
        exchange_(devices_, runner_.stream(), first_parts(group.size())) {
    check_loss(options.loss, network_);
    for (int rank = 0; rank <= group.size(); ++rank)
      totals_begins_.push_back(static_cast<std::size_t>(first_part(rank, group.size())) * totals_of_a_part() *
                               sizeof(DeviceTotals));
  }

  ~CudaReplica() override {
    try {
      runner_.select();
      devices_.wait(runner_.stream());
    } catch (const std::exception&) {
      // Its exchanges were aborted, so that memory can be freed. Who began it has been told.
    }
  }
  CudaReplica(const CudaReplica&) = delete;
  CudaReplica& operator=(const CudaReplica&) = delete;

  Device device() const override { return device_; }

  const SampleShares& sample_shares(std::size_t samples, bool training) override {
    shares_.ranks = static_cast<std::size_t>(group_.size());
    shares_.begins.clear();
    if (!training) {  // Rank 0 has all.
      shares_.begins.assign(1, 0);
      shares_.begins.resize(shares_.ranks + 1, samples);
      return shares_;
    }
    for (int turn = 0; turn < parts_.turns; ++turn) {
      for (int rank = 0; rank <= group_.size(); ++rank) {
        const int part = first_part(rank, group_.size());
        shares_.begins.push_back(cuda::samples_of_parts(samples, parts_, turn, part, part).begin);
      }
    }
    return shares_;
  }

  void train(const Batch& batch, double learning_rate) override {
    check(batch);
    if (batch.size() == 0) return;
    or_abort([&] {
      runner_.flush();
      settle_before(batch);
      ++steps_;
      cuda::StepInput input = runner_.step_input(batch);
      input.step = static_cast<std::uint32_t>(steps_ - 1);
      input.factors = cuda::step_factors(options_.optimizer, learning_rate, steps_);
      runner_.feed().add(runner_.stream(), own_samples(batch), input);
      const cuda::StepInputs inputs = runner_.feed().upload(runner_.stream());
      runner_.program().train_parts(runner_.stream(), static_cast<int>(batch.size()), inputs, exchange_);
      meet();
    });
  }

  void set_momentum(double momentum) override {
    options_.optimizer = changed_momentum(options_.optimizer, momentum);
  }

  void evaluate(const Batch& batch) override {
    check(batch);
    on_rank_0([&] { runner_.evaluate(batch); });
  }

  void predict(const Batch& batch, std::span<float> outputs) override {
    run_and_download(Task::kPredict, batch, outputs);
  }

  void evaluate_and_predict(const Batch& batch, std::span<float> outputs) override {
    run_and_download(Task::kEvaluate, batch, outputs);
  }

  std::string kernels() const override { return runner_.program().kernels(); }

  // All ranks' sums are rank 0's; the others return their own.
  Totals take_totals() override {
    return or_abort([&] {
      settle();
      const auto first = static_cast<std::size_t>(parts_.first) * totals_of_a_part();
      const auto count = static_cast<std::size_t>(parts_.end - parts_.first) * totals_of_a_part();
      std::vector<DeviceTotals> all(kGradientParts * totals_of_a_part());
      const std::vector<DeviceTotals> own = runner_.take_totals(first, count);
      std::ranges::copy(own, all.begin() + static_cast<std::ptrdiff_t>(first));
      const SharedArray array{std::as_writable_bytes(std::span(all)).data(), totals_begins_};
      const auto begin = std::chrono::steady_clock::now();
      group_.all_gather({&array, 1});
      gathering_ += std::chrono::steady_clock::now() - begin;
      return cuda::sum_of(all);
    });
  }

  // Of the exchanges of gradients, as far as the device waits for them, and of totals: nothing is computed
  // meanwhile.
  std::optional<double> take_communication_seconds() override {
    settle();
    return exchange_.take_seconds() + std::exchange(gathering_, {}).count();
  }

  std::int64_t batches_between_totals() const override { return 128; }  // as an engine on one device

  std::vector<float> parameters() const override { return download(runner_.program().parameters()); }
  void set_parameters(std::span<const float> values) override {
    settle();
    runner_.upload(values, runner_.program().parameters(), "set_parameters", "parameters");
  }

  std::vector<float> buffers() const override { return download(runner_.program().buffers()); }
  void set_buffers(std::span<const float> values) override {
    settle();
    runner_.upload(values, runner_.program().buffers(), "set_buffers", "of running statistics");
  }

  std::vector<float> gradients() const override { return download(runner_.program().gradient()); }

  std::vector<OptimizerState> optimizer_state() const override {
    settle();
    return runner_.optimizer_state(options_.optimizer);
  }

  std::int64_t step_count() const override { return steps_; }

  void set_optimizer_state(std::span<const OptimizerState> state, std::int64_t step_count) override {
    settle();
    runner_.set_optimizer_state(state, options_.optimizer);
    steps_ = step_count;
  }

 private:
  cuda::ProgramOptions program_options() const {
    cuda::ProgramOptions options = cuda::program_options(options_, device_.index, parts_);
    options.kernels = kernels_;
    options.augment = {};  // of batches that the host has changed
    options.exchanges_by_part = parts_.most > 1 && cuda::gradient_is_worth_a_round(network_);
    return options;
  }

  std::size_t fed_samples() const {
    return cuda::largest_part(options_.batch_size, parts_) *
           static_cast<std::size_t>(parts_.turns * std::max(1, parts_.end - parts_.first));
  }

  // With different kernels, devices would not have the same bits.
  void join() {
    if (group_.rank() == 0) send_kernels(group_, runner_.program().kernels());
    if (group_.rank() == 0 || runner_.program().kernels() == kernels_) return;
    throw DeviceError(device_.name() + ": it has not the kernels of " + options_.device.name() +
                      ", with which it is to train; want GPUs of one model");
  }

  std::size_t totals_of_a_part() const { return runner_.program().totals().size() / kGradientParts; }

  void check(const Batch& batch) const { check_batch(batch, network_, options_.batch_size, options_.loss); }

  // Calls `work`; after an error this device waits for no other.
  template <class Work>
  std::invoke_result_t<Work> or_abort(Work work) const {
    try {
      return work();
    } catch (const CommunicatorError& error) {
      devices_.abort();
      end_processes(group_, error);
      throw;
    } catch (...) {
      devices_.abort();
      throw;
    }
  }

  // The samples of a batch that this rank trains, turn by turn.
  Batch own_samples(const Batch& batch) {
    own_rows_.clear();
    for (int turn = 0; turn < parts_.turns; ++turn) {
      const SampleRange own = cuda::samples_of_parts(batch.size(), parts_, turn, parts_.first, parts_.end);
      const auto rows = batch.rows.subspan(own.begin, own.size());
      own_rows_.insert(own_rows_.end(), rows.begin(), rows.end());
    }
    Batch samples = batch;
    samples.rows = own_rows_;
    return samples;
  }

  // Where ranks are threads, a batch is rank 0's, and lives until its call returns, and they have one driver.
  void meet() const {
    if (group_.shares_memory()) group_.barrier();
  }

  // Returns when the device has nothing to do. Never wait for the stream without it.
  void settle() const {
    or_abort([&] {
      runner_.flush();
      devices_.wait(runner_.stream());
    });
  }

  // What is done once for a batch of this size, or set: memory is allocated and kernels are loaded, and both
  // may wait for the device in the driver. No exchange may be under way then that waits for another rank,
  // which may wait for the same driver.
  void settle_before(const Batch& batch) {
    const int images = static_cast<int>(batch.size());
    cuda::Program& program = runner_.program();
    if (!program.is_recorded(Task::kTrainParts, 1, images) || trained_set_ != batch.set) {
      settle();
      is_resident_ = runner_.feed().make_resident(runner_.stream(), batch.set);
      trained_set_ = batch.set;
      program.record(runner_.stream(), Task::kTrainParts, 1, images, runner_.feed().inputs());
      meet();  // Of processes, rank 0 alone may have a set.
    } else if (is_resident_ && !runner_.feed().is_resident(batch.set)) {
      settle();  // Rank 0's evaluations have evicted it.
    }
  }

  template <class Work>
  void on_rank_0(Work work) {
    or_abort([&] {
      meet();
      if (group_.rank() == 0) {
        settle_before_evaluation();
        work();
      }
    });
  }

  // Also of an evaluation's graphs and staging buffers.
  void settle_before_evaluation() {
    if (last_trained_ == steps_) return;
    settle();
    last_trained_ = steps_;
  }

  void run_and_download(Task task, const Batch& batch, std::span<float> outputs) {
    check(batch);
    check_outputs(outputs, batch, network_);
    on_rank_0([&] { runner_.run_and_download(task, batch, outputs); });
  }

  std::vector<float> download(const Array<float>& array) const {
    settle();
    return runner_.download(array);
  }

  const Network network_;
  EngineOptions options_;  // only the momentum changes
  Communicator& group_;
  const Device device_;
  const GradientParts parts_;
  const std::string kernels_;  // to be used
  // Mutable because reading results first runs the collected steps.
  mutable cuda::DeviceRunner runner_;
  mutable cuda::DeviceGroup devices_;
  cuda::GroupExchange exchange_;
  std::chrono::duration<double> gathering_{};  // of totals
  SampleShares shares_;
  std::vector<std::uint32_t> own_rows_;           // of the last batch
  std::vector<std::size_t> totals_begins_;        // of the ranks' parts, in bytes
  std::shared_ptr<const SampleSet> trained_set_;  // of the last batch
  bool is_resident_ = false;                      // whether it was when it came first
  std::int64_t steps_ = 0, last_trained_ = 0;     // last_trained_: steps before the last evaluation
};

}  // namespace

std::unique_ptr<ReplicaEngine> make_cuda_replica(const Network& network, const EngineOptions& options,
                                                 Communicator& group) {
  try {
    return std::make_unique<CudaReplica>(network, options, group);
  } catch (const CommunicatorError& error) {
    end_processes(group, error);
    throw;
  }
}

}  // namespace sweep
