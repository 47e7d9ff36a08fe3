#include "core/kernels/cuda/rank_device.h"

#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"
#include "core/parallel/communicator.h"

namespace sweep::cuda {
namespace {

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
void check(const std::vector<RankDevice>& devices, std::size_t of_a_rank) {
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

}  // namespace

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
  check(devices, own.size());
  return stages;
}

}  // namespace sweep::cuda
