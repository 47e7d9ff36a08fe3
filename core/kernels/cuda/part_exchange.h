// How devices that share a batch get what each has computed of its parts.
#pragma once

#include <cstddef>

namespace sweep::cuda {

/// Of arrays [GradientParts::count] of `bytes` bytes per part, at `parts` in the memory of each device. All
/// devices call the same functions in the same order, with the same `bytes` and `round`. Every function puts
/// work on streams and throws what DeviceGroup does. Not thread-safe.
class PartExchange {
 public:
  virtual ~PartExchange() = default;

  /// Of all parts: work that comes later has them.
  virtual void all(std::byte* parts, std::size_t bytes) = 0;

  /// Of each device's part number `round`, counted from its first one; devices that have fewer only get those
  /// of others. The device's own has to be computed by the work so far. Work that comes later goes on
  /// meanwhile, and leaves that part, and those of other devices, alone until finish().
  virtual void begin(std::byte* parts, std::size_t bytes, int round) = 0;

  /// Lets work that comes later have all parts of the begin()s.
  virtual void finish() = 0;
};

}  // namespace sweep::cuda
