// How much memory the stand-in device has, so that tests can run out of it.
#pragma once

#include <cstddef>
#include <string>

namespace sweep::cuda::host {

/// The device's memory; unlimited at first. Thread-safe, as the functions below.
void set_memory_limit(std::size_t bytes);

/// The device's shared memory per block; at first as much as the largest GPUs have.
void set_shared_limit(std::size_t bytes);

/// Accounts for memory. reserve_memory() throws DeviceError as cudaMalloc would fail.
void reserve_memory(std::size_t bytes, const std::string& purpose);
void release_memory(std::size_t bytes);

/// What is taken now, and what is left.
std::size_t memory_in_use();
std::size_t memory_free();

}  // namespace sweep::cuda::host
