// CRC-32C (Castagnoli), the checksum of RFC 3720, and the masked form that event files keep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sweep::tbwriter {

/// Returns the checksum of `before` (another call's result, 0 for none) continued with `bytes`. Uses the
/// processor's instruction where there is one. Thread-safe.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

/// The same without any special instruction; what crc32c() falls back to.
std::uint32_t crc32c_portable(std::string_view bytes, std::uint32_t before = 0);

/// A checksum of data that holds checksums is weak, so event files store it rotated and shifted.
constexpr std::uint32_t mask_crc(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }

}  // namespace sweep::tbwriter
