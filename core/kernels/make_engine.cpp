// What chooses between the kinds of devices: lists those of this machine, the CPU and what the CUDA driver
// and libraries report, creates the engine for one, and says how much memory it takes.
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/threads.h"
#include "core/engine/device.h"
#include "core/engine/engine.h"
#include "core/engine/engine_checks.h"
#include "core/engine/stages.h"
#include "core/kernels/cpu/cpu_engine.h"
#include "core/kernels/cpu/simd/kernel.h"
#include "core/kernels/cuda/cuda_engine.h"
#include "core/kernels/cuda/runtime/cuda_devices.h"
#include "core/parallel/replicated_engine.h"

namespace sweep {
namespace {

// The model name in /proc/cpuinfo; such as "aarch64" on architectures that have none there.
std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "CPU";
}

// What Highway calls AVX3 is AVX-512 elsewhere.
std::string instruction_set() {
  std::string name = simd_target_name();
  if (name.starts_with("AVX3")) name.replace(0, 4, "AVX-512");
  return name;
}

void throw_if(const EngineOptions& options, const std::optional<std::string>& reason) {
  if (reason) throw DeviceError(options.device.name() + ": " + *reason);
}

std::unique_ptr<ReplicaEngine> make_replica(const Network& network, const EngineOptions& options,
                                            Communicator& group) {
  const bool cuda = options.device.type == DeviceType::kCuda;
  return (cuda ? make_cuda_replica : make_cpu_replica)(network, options, group);
}

}  // namespace

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> devices(1);
  devices[0].description = cpu_model();
  devices[0].memory_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                            static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  devices[0].cores = available_cores();
  devices[0].capability = instruction_set();
  devices[0].software = "Highway " + simd_library_version();
  for (DeviceInfo& device : list_cuda_devices()) devices.push_back(std::move(device));
  return devices;
}

std::vector<LibraryInfo> list_libraries() { return list_cuda_libraries(); }

std::optional<std::string> cuda_unavailable_reason() { return cuda_missing_reason(); }

std::optional<std::string> device_group_unavailable_reason(const Device& first, int count, int processes) {
  if (first.type == DeviceType::kCpu) return std::nullopt;
  if (count > kMaxCudaReplicas)
    return "\"parallel.data\": at most " + std::to_string(kMaxCudaReplicas) +
           " GPUs, or sets of them, can share a batch, which is cut into as many parts, got " +
           std::to_string(count);
  for (int i = 0; i < count / processes; ++i) {
    if (auto reason = unavailable_reason(Device{first.type, first.index + i})) return reason;
  }
  return nccl_missing_reason();
}

bool is_lost(const Device& device) {
  return device.type == DeviceType::kCuda && cuda_device_is_lost(device.index);
}

std::optional<std::string> unavailable_reason(const Device& device) {
  if (device.type == DeviceType::kCpu) {
    if (device.index == 0) return std::nullopt;
    return device.name() + " is a part of this machine that only parallel training uses";
  }
  if (auto reason = cuda_unavailable_reason()) return reason;
  const std::vector<DeviceInfo> devices = list_cuda_devices();
  if (device.index >= 0 && device.index < static_cast<int>(devices.size()))
    return cuda_device_reason(devices[static_cast<std::size_t>(device.index)]);
  return "there is no " + device.name() + ": this machine has " + counted(devices.size(), "CUDA device") +
         ", numbered from 0";
}

std::unique_ptr<Engine> make_engine(const Network& network, const EngineOptions& options) {
  check_options(options, network);
  throw_if(options, unavailable_reason(options.device));
  throw_if(options, parallel_unavailable_reason(network, options));
  const bool cuda = options.device.type == DeviceType::kCuda;
  if (options.parallel.data > 1) return make_threaded_engine(network, options, make_replica);
  if (cuda && options.parallel.has_stages())
    return make_staged_cuda_engine(network, options,
                                   split_into_stages(network, options.parallel, options.device));
  if (cuda) return make_cuda_engine(network, options);
  return make_cpu_engine(network, options);
}

std::optional<std::string> group_unavailable_reason(const Network& network, const EngineOptions& options,
                                                    int ranks) {
  const int data = options.parallel.data;
  const bool one_each = data > 1 && options.device.type == DeviceType::kCuda;
  EngineOptions own = options;  // of one process
  if (one_each) own.parallel.data = 1;
  auto reason = one_each ? device_group_unavailable_reason(options.device, data, data) : std::nullopt;
  if (!reason) reason = parallel_unavailable_reason(network, own);
  if (reason || data <= 1) return reason;
  if (one_each ? data == ranks : data % ranks == 0) return std::nullopt;
  return "got \"parallel\": {\"data\": " + std::to_string(data) + "} with " + std::to_string(ranks) +
         " MPI ranks, want " + std::to_string(ranks) +
         (one_each
              ? ", one GPU each, or one set of them; without an MPI launcher one process can have several"
              : " or a multiple of it");
}

std::unique_ptr<Engine> make_engine_on(Communicator& group, const Network& network,
                                       const EngineOptions& options) {
  if (options.parallel.data <= 1) return make_engine(network, options);
  check_options(options, network);
  throw_if(options, unavailable_reason(options.device));
  throw_if(options, group_unavailable_reason(network, options, group.size()));
  return make_group_engine(network, options, group, make_replica);
}

int serve_replicas(Communicator& group) { return serve_replicas(group, make_replica); }

std::optional<std::size_t> engine_memory(const Network& network, const EngineOptions& options) {
  check_options(options, network);
  if (options.device.type != DeviceType::kCpu) return std::nullopt;
  return cpu_engine_memory(network, options);
}

}  // namespace sweep
