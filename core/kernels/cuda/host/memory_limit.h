// How much memory the stand-in device has, so that tests can run out of it.
#pragma once

#include <cstddef>
#include <string>

namespace sweep::cuda::host {

/// Sets the size of the device's memory; unlimited by default. All functions here are thread-safe.
void set_memory_limit(std::size_t bytes);

/// Sets the device's shared memory per block; 227 KiB by default, as an H100 has.
void set_shared_limit(std::size_t bytes);

/// Accounts for an allocation and its release. reserve_memory() throws DeviceError where cudaMalloc would
/// fail.
void reserve_memory(std::size_t bytes, const std::string& purpose);
void release_memory(std::size_t bytes);

/// Bytes that are reserved, and that are left.
std::size_t memory_in_use();
std::size_t memory_free();

}  // namespace sweep::cuda::host
