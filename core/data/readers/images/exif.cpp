#include "core/data/readers/images/exif.h"

#include <cstddef>

namespace sweep {
namespace {

// Numbers of `bytes` bytes at `at`, in the order that the file says; 0 beyond the end.
std::uint32_t number(std::span<const std::uint8_t> data, std::size_t at, std::size_t bytes, bool big_endian) {
  if (at > data.size() || data.size() - at < bytes) return 0;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::size_t shift = 8 * (big_endian ? bytes - 1 - i : i);
    value |= std::uint32_t{data[at + i]} << shift;
  }
  return value;
}

}  // namespace

// TIFF 6.0, section 2: byte order, 42, offset of the first directory, which is a count and 12 bytes per
// entry: tag, type, count, value.
int exif_orientation(std::span<const std::uint8_t> tiff) {
  constexpr std::uint32_t kOrientationTag = 0x0112, kShortType = 3;
  constexpr std::size_t kHeaderBytes = 8, kEntryBytes = 12;
  if (tiff.size() < kHeaderBytes || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M')) return 1;
  const bool big_endian = tiff[0] == 'M';
  if (number(tiff, 2, 2, big_endian) != 42) return 1;
  const std::size_t directory = number(tiff, 4, 4, big_endian);
  const std::size_t entries = number(tiff, directory, 2, big_endian);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (entry + kEntryBytes > tiff.size()) return 1;
    if (number(tiff, entry, 2, big_endian) != kOrientationTag) continue;
    if (number(tiff, entry + 2, 2, big_endian) != kShortType) return 1;
    const std::uint32_t orientation = number(tiff, entry + 8, 2, big_endian);
    return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
  }
  return 1;
}

}  // namespace sweep
