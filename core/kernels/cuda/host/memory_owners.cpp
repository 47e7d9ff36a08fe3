#include "core/kernels/cuda/host/memory_owners.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "core/base/error.h"
#include "core/kernels/cuda/host/current_device.h"

namespace sweep::cuda::host {
namespace {

struct Piece {
  std::size_t bytes;
  int device;
};

std::mutex mutex;
std::map<std::uintptr_t, Piece>& pieces() {  // by address
  static std::map<std::uintptr_t, Piece> all;
  return all;
}

}  // namespace

void note_memory(const void* data, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  pieces()[reinterpret_cast<std::uintptr_t>(data)] = {bytes, current_device()};
}

void forget_memory(const void* data) {
  const std::lock_guard lock(mutex);
  pieces().erase(reinterpret_cast<std::uintptr_t>(data));
}

void require_memory_of(int device, const void* data, std::size_t bytes) {
  const std::lock_guard lock(mutex);
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  auto piece = pieces().upper_bound(address);
  const bool is_known = piece != pieces().begin() &&
                        address + bytes <= std::prev(piece)->first + std::prev(piece)->second.bytes;
  if (is_known && std::prev(piece)->second.device == device) return;
  throw DeviceError("cuda: a copy between devices has memory that is not of device " +
                    std::to_string(device));
}

std::vector<std::span<const std::byte>> all_memory() {
  const std::lock_guard lock(mutex);
  std::vector<std::span<const std::byte>> all;
  for (const auto& [address, piece] : pieces())
    all.emplace_back(reinterpret_cast<const std::byte*>(address), piece.bytes);
  return all;
}

}  // namespace sweep::cuda::host
