// Which of the stand-in's devices each piece of memory belongs to. Thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sweep::cuda::host {

/// Notes that [data, data + bytes) is the current device's, until forget_memory(data).
void note_memory(const void* data, std::size_t bytes);
void forget_memory(const void* data);

/// Throws DeviceError unless [data, data + bytes) is memory of device `device`.
void require_memory_of(int device, const void* data, std::size_t bytes);

/// The memory of all devices, by address.
std::vector<std::span<const std::byte>> all_memory();

}  // namespace sweep::cuda::host
