// CRC-32C (Castagnoli), the checksum of RFC 3720, and the masked form that event files store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sweep::tbwriter {

/// Returns the checksum of `bytes`, continuing from `before`: the checksum of the bytes in front of them, 0
/// for none. Uses instructions of the processor if it has them. Thread-safe.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

/// The stored form of a checksum: rotated, plus a constant, because the CRC of data that contains its own CRC
/// is weak. As in LevelDB and TensorFlow.
constexpr std::uint32_t mask_crc(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }

}  // namespace sweep::tbwriter
