// Devices: what a sweep file may ask for, what this machine has, and why something is missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/precision.h"

namespace sweep {

enum class DeviceType { kCpu, kCuda };

/// The CPU or one GPU. Owns nothing; copy it freely.
struct Device {
  DeviceType type = DeviceType::kCpu;
  int index = 0;

  /// "cpu" or "cuda:1"; the index 0 is left out.
  std::string name() const;
  friend bool operator==(const Device&, const Device&) = default;
};

/// Reads "cpu", "cpu:N", "cuda", "cuda:N" (N from 0) or "auto", which is the first CUDA device if there is
/// one and else the CPU. "cuda" is "cuda:0". Throws ConfigError, saying what is allowed, on any other text.
/// Says nothing about whether the device is there: see unavailable_reason().
Device parse_device(std::string_view text);

/// What `sweep devices` shows of one device.
struct DeviceInfo {
  Device device;
  std::string description;         // the model name, for example "AMD EPYC 9B45"
  std::uint64_t memory_bytes = 0;  // in all
  int cores = 0;                   // CPU: hardware threads this process may use; CUDA: multiprocessors
  std::string capability;  // CPU: SIMD target in use, such as "AVX3"; CUDA: compute capability, such as "9.0"
  std::string
      software;  // what works it, with versions: "Highway 1.0.3", "CUDA 13.0, driver 580.65.06 for CUDA 13.0"
  std::vector<Precision> precisions;  // that its engine has
};

/// A library that an engine uses where it is installed, and does without elsewhere.
struct LibraryInfo {
  std::string name;          // "cuDNN"
  std::string use;           // what for: "wide convolutions"
  std::string version = {};  // "9.19.0"
  std::string path = {};     // of its file
  std::string problem = {};  // why it is not used, and for a missing one where it was looked for; else empty
};

/// Hardware threads that this process may run on, >= 1.
int available_cores();

/// The CPU first, then every CUDA device that the driver sees. Never throws: a broken driver shows as no
/// device.
std::vector<DeviceInfo> list_devices();

/// The libraries that this build can use beside the driver, installed or not. Opens them, once per process.
/// Never throws.
std::vector<LibraryInfo> list_libraries();

/// Why no CUDA device can be used here ("this build has no CUDA", "no NVIDIA driver", …), or nothing if one
/// can.
std::optional<std::string> cuda_unavailable_reason();

/// Why the CPU cannot compute with Precision::kBf16 here, or nothing if it can.
std::optional<std::string> bf16_unavailable_reason();

/// Why `device` cannot be used on this machine, or not with that precision, or nothing if it can.
std::optional<std::string> unavailable_reason(const Device& device, Precision precision = Precision::kFp32);

}  // namespace sweep
