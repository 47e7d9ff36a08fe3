// One of several CUDA devices, or sets of them, that train a network together.
//
// A batch is cut into kBatchShares shares, and a rank computes some of them, on one device or on several
// that have the network's layers between them. The ranks exchange the gradients of all shares, and before
// them the sums that batch normalization needs of each; every rank adds them up in order and takes the whole
// step. So the bits depend neither on the number of devices, nor on the way in which NCCL passes on what it
// never adds up.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/kernels/cuda/cuda_engine.h"
#include "core/kernels/cuda/libraries/nccl.h"
#include "core/kernels/cuda/network_engine.h"
#include "core/kernels/cuda/network_in_stages.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"
#include "core/parallel/communicator.h"

namespace sweep {
namespace {

using cuda::BatchShares;
using cuda::kBatchShares;
using cuda::NetworkInStages;
using cuda::SampleRange;

static_assert(kMaxCudaReplicas == kBatchShares);

// The shares are the same in every batch, so that each rank has the same ones in the sums over an epoch.
// Ranks after the last share have none; no network is trained with so many.
int first_share(int rank, int size) { return kBatchShares * rank / size; }

BatchShares shares_of(const EngineOptions& options, const Communicator& group) {
  return {.turns = cuda::turns_of(options),
          .count = kBatchShares,
          .first = first_share(group.rank(), group.size()),
          .end = first_share(group.rank() + 1, group.size()),
          .most = (kBatchShares + group.size() - 1) / group.size()};
}

// The max samples of a batch that a rank computes.
std::size_t own_samples_of(const EngineOptions& options, const BatchShares& shares) {
  return cuda::largest_share(options.batch_size, shares) *
         static_cast<std::size_t>(shares.turns * std::max(1, shares.end - shares.first));
}

// The first share of every rank, and the end of the last one's.
std::vector<int> first_shares(int size) {
  std::vector<int> shares;
  for (int rank = 0; rank <= size; ++rank) shares.push_back(first_share(rank, size));
  return shares;
}

// With other libraries, ranks would not have the same bits.
void require_equal_kernels(Communicator& group, const std::string& own) {
  std::uint64_t size = own.size();
  group.broadcast(bytes_of_value(size));
  std::string first = own;  // rank 0's, in the end
  first.resize(size);
  group.broadcast(bytes_of(std::span(first)));
  on_all_ranks(group, [&] {
    if (own != first)
      throw DeviceError("has the kernels " + own + ", and rank 0 has " + first +
                        "; want GPUs of one model and the same libraries");
  });
}

// What a rank tells the others of its device; texts end with '\0'.
struct RankDevice {
  std::array<char, 256> model{};
  std::array<char, 64> uuid{}, machine{};
};

template <std::size_t n>
void set_text(std::array<char, n>& text, const std::string& value) {
  value.copy(text.data(), n - 1);
}

std::string name_of(std::size_t rank, const RankDevice& device) {
  return "rank " + std::to_string(rank) + " on " + device.machine.data();
}

std::vector<Stage> chosen_stages(const Network& network, const EngineOptions& options,
                                 const Communicator& group) {
  if (const auto reason = cuda_missing_reason()) throw DeviceError(*reason);
  std::vector<Stage> stages =
      stages_of_replica(split_into_stages(network, options.parallel, options.device), group.local_rank());
  if (!group.shares_memory()) {
    const int count = static_cast<int>(list_cuda_devices().size());
    const int lowest = device_range(stages).first;
    for (Stage& stage : stages) stage.device.index -= lowest / count * count;
  }
  for (const Stage& stage : stages) {
    if (const auto reason = unavailable_reason(stage.device)) throw DeviceError(*reason);
  }
  return stages;
}

std::string wanted(std::size_t count) { return count == 1 ? "one" : std::to_string(count) + " of their own"; }

// Every rank finds the same fault, and says the same. `devices`: of all ranks, as many of each.
void check_devices(const std::vector<RankDevice>& devices, std::size_t of_a_rank) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const RankDevice& own = devices[i];
    const std::size_t rank = i / of_a_rank;
    for (std::size_t other = 0; other < rank * of_a_rank; ++other) {
      if (devices[other].uuid != own.uuid) continue;
      throw ReplicaError(name_of(rank, own) + " has the same GPU as " +
                         name_of(other / of_a_rank, devices[other]) + "; want " + wanted(of_a_rank) +
                         " for each rank: as many GPUs on a machine as its ranks have, all of which a rank "
                         "sees, or its own alone (srun --gpus-per-task=" +
                         std::to_string(of_a_rank) + ")");
    }
    if (own.model != devices[0].model)
      throw ReplicaError(name_of(rank, own) + " has a " + own.model.data() + ", but " +
                         name_of(0, devices[0]) + " a " + devices[0].model.data() +
                         ", and their bits may differ; want GPUs of one model");
  }
}

// Returns the stages of `network` on this rank's devices; one device has all layers if options.parallel has
// no stages. If the ranks are threads, the rank has the devices of replica number `rank`, see
// stages_of_replica(). If they are processes, it has those of replica number `local rank`, modulo the
// devices that the process sees, which may be only its own (CUDA_VISIBLE_DEVICES). Called by all ranks
// together. Throws ReplicaError, naming the ranks, if a device cannot be used, if two ranks have the same
// one, or if not all are of one model.
std::vector<Stage> stages_of_rank(const Network& network, const EngineOptions& options, Communicator& group) {
  std::vector<Stage> stages;
  on_all_ranks(group, [&] { stages = chosen_stages(network, options, group); });
  std::vector<Device> own;
  for (const Stage& stage : stages) place_of(stage.device, own);
  const std::vector<DeviceInfo> infos = list_cuda_devices();
  const auto size = static_cast<std::size_t>(group.size());
  std::vector<RankDevice> devices(size * own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    RankDevice& device = devices[static_cast<std::size_t>(group.rank()) * own.size() + i];
    const DeviceInfo& info = infos.at(static_cast<std::size_t>(own[i].index));
    set_text(device.model, info.description);
    set_text(device.uuid, info.uuid);
    if (::gethostname(device.machine.data(), device.machine.size() - 1) != 0)
      set_text(device.machine, "a machine");
  }
  std::vector<std::size_t> begins;
  for (std::size_t rank = 0; rank <= size; ++rank) begins.push_back(rank * own.size() * sizeof(RankDevice));
  const SharedArray array{bytes_of(std::span(devices)).data(), begins};
  group.all_gather({&array, 1});
  check_devices(devices, own.size());
  return stages;
}

// One for each of a rank's devices.
std::vector<cuda::DeviceGroupId> send_ids(Communicator& group, std::size_t count) {
  std::vector<cuda::DeviceGroupId> ids(count);
  for (cuda::DeviceGroupId& id : ids) {
    if (group.rank() == 0) id = cuda::make_group_id();
    group.broadcast(id);
  }
  return ids;
}

// After an error of the devices' exchange: throws the reason if another rank has told it, else tells this
// one. Processes end, as where the group has an error.
void fail_group(Communicator& group, const CommunicatorError& error) {
  group.check();
  group.abort_for_lost_rank(error.what());
}

class CudaReplica final : public cuda::NetworkEngine<NetworkInStages, ReplicaEngine> {
 public:
  // Uses `group` only in join(), which comes next.
  CudaReplica(const Network& network, const EngineOptions& options, Communicator& group,
              const std::vector<Stage>& stages, const BatchShares& shares)
      : NetworkEngine(network, options, options, stages, shares, own_samples_of(options, shares)),
        group_(group),
        device_(stages.front().device),
        shares_(shares) {}

  void join() {
    require_equal_kernels(group_, kernels());
    trained_.join(send_ids(group_, trained_.device_count()), group_, first_shares(group_.size()));
  }

  Device device() const override { return device_; }

  const RankShares& sample_shares(std::size_t samples, bool training) override {
    sample_shares_.ranks = static_cast<std::size_t>(group_.size());
    sample_shares_.begins.clear();
    if (!training) {  // Rank 0 has all.
      sample_shares_.begins.assign(1, 0);
      sample_shares_.begins.resize(sample_shares_.ranks + 1, samples);
      return sample_shares_;
    }
    for (int turn = 0; turn < shares_.turns; ++turn) {
      for (int rank = 0; rank <= group_.size(); ++rank) {
        const int share = first_share(rank, group_.size());
        sample_shares_.begins.push_back(cuda::samples_of_shares(samples, shares_, turn, share, share).begin);
      }
    }
    return sample_shares_;
  }

  void abandon_group() noexcept override { trained_.abort(); }

  void train(const Batch& batch, const StepValues& values) override {
    check(batch);
    if (batch.size() == 0) return;
    or_abort([&] {
      settle_before(batch);
      trained_.train(own_samples(batch), batch.size(), next_step(batch, values));
      meet();
    });
  }

  // All ranks' sums are rank 0's; the others return their own.
  Totals take_totals() override {
    return or_abort([&] {
      settle();
      const std::vector<Totals> own = trained_.take_totals();
      const std::size_t of_a_share = own.size() / static_cast<std::size_t>(shares_.end - shares_.first);
      std::vector<Totals> all(kBatchShares * of_a_share);
      std::vector<std::size_t> begins;  // of the ranks' shares, in bytes
      for (const int share : first_shares(group_.size()))
        begins.push_back(static_cast<std::size_t>(share) * of_a_share * sizeof(Totals));
      std::ranges::copy(own, all.begin() + shares_.first * static_cast<std::ptrdiff_t>(of_a_share));
      const SharedArray array{bytes_of(std::span(all)).data(), begins};
      const auto begin = std::chrono::steady_clock::now();
      group_.all_gather({&array, 1});
      gathering_ += std::chrono::steady_clock::now() - begin;
      return cuda::sum_of(all);
    });
  }

  // Counts the exchanges of gradients, as far as devices wait for them, and of totals: nothing is computed
  // meanwhile.
  std::optional<double> take_communication_seconds() override {
    settle();
    return trained_.take_exchange_seconds() + std::exchange(gathering_, {}).count();
  }

 private:
  // Calls `work`; after an error this device waits for no other.
  template <class Work>
  std::invoke_result_t<Work> or_abort(Work work) const {
    try {
      return work();
    } catch (const CommunicatorError& error) {
      trained_.abort();
      fail_group(group_, error);
      throw;
    } catch (const std::exception& error) {
      trained_.abort();
      // They may wait for this device and not for this thread.
      if (group_.shares_memory()) group_.abort(reason_of(error));
      throw;
    }
  }

  // The samples of a batch that this rank trains, turn by turn.
  Batch own_samples(const Batch& batch) {
    const auto own_of = [&](int turn) {
      return cuda::samples_of_shares(batch.size(), shares_, turn, shares_.first, shares_.end);
    };
    if (shares_.turns == 1) return cuda::rows_of(batch, own_of(0).begin, own_of(0).end);
    own_rows_.clear();
    for (int turn = 0; turn < shares_.turns; ++turn) {
      const SampleRange own = own_of(turn);
      const auto rows = batch.indices.subspan(own.begin, own.size());
      own_rows_.insert(own_rows_.end(), rows.begin(), rows.end());
    }
    Batch samples = batch;
    samples.indices = own_rows_;
    return samples;
  }

  // If ranks are threads, they share a driver, and a batch is rank 0's and lives until its call returns.
  void meet() const {
    if (group_.shares_memory()) group_.barrier();
  }

  // Returns when the devices have nothing to do.
  void settle() const {
    or_abort([&] { trained_.wait(); });
  }
  NetworkInStages& settled() const override {
    settle();
    return trained_;
  }

  // What is done once for a batch of this size, or set: memory is allocated and kernels are loaded, and both
  // may wait for the device in the driver. No exchange may be under way then that waits for another rank,
  // which may wait for the same driver.
  void settle_before(const Batch& batch) {
    const auto prepare = [&] {
      settle();
      is_resident_ = trained_.prepare(batch);
      trained_set_ = batch.set;
    };
    if (!trained_.is_prepared(batch.size())) {
      // Rank 0 may copy a large set meanwhile, and is waited for as long as it takes.
      on_all_ranks(group_, prepare);
    } else if (trained_set_ != batch.set) {
      prepare();  // Among processes, rank 0 alone may have a set.
      meet();
    } else if (is_resident_ && !trained_.is_resident(batch)) {
      settle();  // Rank 0's evaluations have evicted it.
    }
  }

  // Rank 0 does it.
  void evaluating(const std::function<void()>& work) override {
    or_abort([&] {
      meet();
      if (group_.rank() == 0) {
        settle_before_evaluation();
        trained_.keep(trained_set_);  // Others may be in an exchange when it came back.
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

  Communicator& group_;
  const Device device_;  // the first
  const BatchShares shares_;
  std::chrono::duration<double> gathering_{};  // of totals
  RankShares sample_shares_;
  std::vector<std::uint32_t> own_rows_;               // of the last batch
  std::shared_ptr<const TensorDataset> trained_set_;  // of the last batch
  bool is_resident_ = false;                          // whether it was when it came first
  std::int64_t last_trained_ = 0;                     // steps before the last evaluation
};

}  // namespace

std::unique_ptr<ReplicaEngine> make_cuda_replica(const Network& network, const EngineOptions& options,
                                                 Communicator& group) {
  try {
    const std::vector<Stage> stages = stages_of_rank(network, options, group);
    std::unique_ptr<CudaReplica> replica;
    on_all_ranks(group, [&] {
      replica = std::make_unique<CudaReplica>(network, options, group, stages, shares_of(options, group));
    });
    replica->join();
    return replica;
  } catch (const CommunicatorError& error) {
    fail_group(group, error);
    throw;
  }
}

}  // namespace sweep
