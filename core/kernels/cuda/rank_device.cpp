#include "core/kernels/cuda/rank_device.h"

#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"

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

Device chosen_device(const EngineOptions& options, const Communicator& group) {
  if (const auto reason = cuda_missing_reason()) throw DeviceError(*reason);
  Device device = options.device;
  device.index += group.local_rank();
  if (!group.shares_memory()) device.index %= static_cast<int>(list_cuda_devices().size());
  if (const auto reason = unavailable_reason(device)) throw DeviceError(*reason);
  return device;
}

// Every rank finds the same fault, and says the same.
void check(const std::vector<RankDevice>& devices) {
  for (std::size_t rank = 1; rank < devices.size(); ++rank) {
    const RankDevice& own = devices[rank];
    for (std::size_t other = 0; other < rank; ++other) {
      if (devices[other].uuid != own.uuid) continue;
      throw DeviceError(name_of(rank, own) + " has the same GPU as " + name_of(other, devices[other]) +
                        "; want one for each rank: as many GPUs on a machine as it has ranks, all of which a "
                        "rank sees, or its own alone (srun --gpus-per-task=1)");
    }
    if (own.model != devices[0].model)
      throw DeviceError(name_of(rank, own) + " has a " + own.model.data() + ", but " +
                        name_of(0, devices[0]) + " a " + devices[0].model.data() +
                        ", and their bits may differ; want GPUs of one model");
  }
}

}  // namespace

Device device_of_rank(const EngineOptions& options, Communicator& group) {
  const Device device = chosen_device(options, group);
  const DeviceInfo info = list_cuda_devices().at(static_cast<std::size_t>(device.index));
  const auto size = static_cast<std::size_t>(group.size());
  std::vector<RankDevice> devices(size);
  RankDevice& own = devices[static_cast<std::size_t>(group.rank())];
  set_text(own.model, info.description);
  set_text(own.uuid, info.uuid);
  if (::gethostname(own.machine.data(), own.machine.size() - 1) != 0) set_text(own.machine, "a machine");
  std::vector<std::size_t> begins;
  for (std::size_t rank = 0; rank <= size; ++rank) begins.push_back(rank * sizeof(RankDevice));
  const SharedArray array{std::as_writable_bytes(std::span(devices)).data(), begins};
  group.all_gather({&array, 1});
  check(devices);
  return device;
}

}  // namespace sweep::cuda
