// Devices: the names in sweep files, what this machine has, and why something cannot be used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

enum class DeviceType { kCpu, kCuda };

/// The CPU or one GPU. Owns nothing; copy it freely.
struct Device {
  DeviceType type = DeviceType::kCpu;
  int index = 0;  // >= 0

  /// "cpu" or "cuda:1"; the index 0 is left out.
  std::string name() const;
  friend bool operator==(const Device&, const Device&) = default;
};

/// As PyTorch prints it: "cpu" or "cuda:0", where Device::name() would say "cuda".
std::string numbered_name(const Device& device);

/// Parses "cpu", "cpu:N", "cuda", "cuda:N" (N from 0) or "auto", which is the first CUDA device if one can be
/// used, otherwise the CPU. "cuda" is "cuda:0". Throws ConfigError, listing what is allowed, for any other
/// text. Does not check that the device exists, see unavailable_reason(). Thread-safe, as all functions here.
Device parse_device(std::string_view text);

/// What `sweep devices` shows of one device.
struct DeviceInfo {
  Device device;
  std::string description;         // the model name, for example "AMD EPYC 9B45"
  std::uint64_t memory_bytes = 0;  // total, not only free memory
  int cores = 0;                   // CPU: hardware threads this process may use; CUDA: multiprocessors
  std::string capability;  // CPU: SIMD target in use, such as "AVX2"; CUDA: compute capability, such as "9.0"
  std::string software;    // with versions: "Highway 1.0.3", "CUDA 13.0, driver 580.65.06 for CUDA 13.0"
  std::string uuid = {};   // of a GPU: of no other in the world; in hexadecimal digits
};

/// An optional library: an engine uses it if it is installed.
struct LibraryInfo {
  std::string name;          // "cuDNN"
  std::string use;           // what it is used for: "wide convolutions"
  std::string version = {};  // "9.19.0"
  std::string path = {};     // of its file
  std::string problem = {};  // why it is not used, with the paths searched if it is missing; otherwise empty
};

/// The CPU first, then every CUDA device that the driver reports. A broken driver is
/// reported as no device; never throws.
std::vector<DeviceInfo> list_devices();

/// The optional libraries of this build, installed or not. Opens them, once per process. Never throws.
std::vector<LibraryInfo> list_libraries();

/// Why no CUDA device can be used ("this build has no CUDA", "no NVIDIA driver", …), or nothing if one can.
std::optional<std::string> cuda_unavailable_reason();

/// Why `count` devices cannot train one network together, or nothing if they can: `first` and those after it.
/// With `processes`, each of them has as many; only this one's are checked.
std::optional<std::string> device_group_unavailable_reason(const Device& first, int count, int processes = 1);

/// Why `device` cannot be used on this machine, or nothing if it can.
std::optional<std::string> unavailable_reason(const Device& device);

/// Whether a failed kernel or broken memory keeps this process from using `device` any more; another process
/// may. Asks the device, so it is for after an error. Thread-safe.
bool is_lost(const Device& device);

}  // namespace sweep
