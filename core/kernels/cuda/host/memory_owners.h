// Which of the stand-in's devices each piece of memory belongs to. Thread-safe.
#pragma once

#include <cstddef>

namespace sweep::cuda::host {

/// Notes that [data, data + bytes) is the current device's, until forget_memory(data).
void note_memory(const void* data, std::size_t bytes);
void forget_memory(const void* data);

/// Throws DeviceError unless [data, data + bytes) is memory of device `device`.
void require_memory_of(int device, const void* data, std::size_t bytes);

}  // namespace sweep::cuda::host
