// The hardware path computes three adjacent blocks at once, because the instruction has a latency of three
// cycles but a throughput of one per cycle. A CRC is linear: the CRC of A followed by B is the CRC of A,
// advanced over |B| zero bytes, xor the CRC of B from 0. Advancing is a multiplication with x^(8|B|) modulo
// the polynomial, which tables turn into four loads, since |B| is one of two constants.
//
// The portable path is slicing-by-8: eight table lookups per 8 bytes.
#include "tbwriter/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace sweep::tbwriter {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78u;  // bit-reflected: bit 31 is the coefficient of x^0

// table[k][b] is the CRC of byte b followed by k zero bytes.
constexpr auto make_slicing_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> table{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[0][b] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      table[k][b] = (table[k - 1][b] >> 8) ^ table[0][table[k - 1][b] & 0xFF];
    }
  }
  return table;
}

constexpr auto kSlicing = make_slicing_tables();

std::uint64_t load64(const char* p) {
  std::uint64_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

#if defined(__x86_64__)

// a · b modulo the polynomial.
constexpr std::uint32_t multiply_modulo(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return product;
}

// Advances a CRC over a fixed number of zero bytes: the xor of one entry for each of its four bytes.
using ShiftTable = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr ShiftTable make_shift_table(std::size_t bytes) {
  std::uint32_t power = 1u << 31;   // x^0
  std::uint32_t square = 1u << 23;  // x^8
  for (std::size_t n = bytes; n != 0; n >>= 1) {
    if ((n & 1) != 0) power = multiply_modulo(power, square);
    square = multiply_modulo(square, square);
  }
  ShiftTable table{};
  for (unsigned k = 0; k < 4; ++k) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      table[k][1u << bit] = multiply_modulo(power, 1u << (8 * k + bit));
    }
    for (unsigned b = 1; b < 256; ++b) table[k][b] = table[k][b & (b - 1)] ^ table[k][b & (0u - b)];
  }
  return table;
}

std::uint32_t shift(const ShiftTable& table, std::uint32_t crc) {
  return table[0][crc & 0xFF] ^ table[1][(crc >> 8) & 0xFF] ^ table[2][(crc >> 16) & 0xFF] ^
         table[3][crc >> 24];
}

// Long blocks make joining rare; short ones are for records of a few hundred bytes.
constexpr std::size_t kLongBlock = 4096, kShortBlock = 128;
constexpr ShiftTable kLongShift = make_shift_table(kLongBlock);
constexpr ShiftTable kShortShift = make_shift_table(kShortBlock);

template <std::size_t kBlock>
__attribute__((target("sse4.2"))) std::uint64_t three_streams(const char*& p, std::size_t& size,
                                                              std::uint64_t crc, const ShiftTable& table) {
  while (size >= 3 * kBlock) {
    std::uint64_t second = 0, third = 0;
    for (const char* end = p + kBlock; p < end; p += 8) {
      crc = _mm_crc32_u64(crc, load64(p));
      second = _mm_crc32_u64(second, load64(p + kBlock));
      third = _mm_crc32_u64(third, load64(p + 2 * kBlock));
    }
    crc = shift(table, static_cast<std::uint32_t>(crc)) ^ second;
    crc = shift(table, static_cast<std::uint32_t>(crc)) ^ third;
    p += 2 * kBlock;
    size -= 3 * kBlock;
  }
  return crc;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(std::string_view bytes, std::uint32_t before) {
  const char* p = bytes.data();
  std::size_t size = bytes.size();
  std::uint64_t crc = before ^ 0xFFFFFFFFu;
  crc = three_streams<kLongBlock>(p, size, crc, kLongShift);
  crc = three_streams<kShortBlock>(p, size, crc, kShortShift);
  for (; size >= 8; p += 8, size -= 8) crc = _mm_crc32_u64(crc, load64(p));
  auto last = static_cast<std::uint32_t>(crc);
  for (; size > 0; ++p, --size) last = _mm_crc32_u8(last, static_cast<unsigned char>(*p));
  return last ^ 0xFFFFFFFFu;
}

const bool kHardware = __builtin_cpu_supports("sse4.2") != 0;

#endif

}  // namespace

std::uint32_t crc32c_portable(std::string_view bytes, std::uint32_t before) {
  const char* p = bytes.data();
  std::size_t size = bytes.size();
  std::uint32_t crc = before ^ 0xFFFFFFFFu;
  for (; size >= 8; p += 8, size -= 8) {
    const auto at = [p](int i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(p[i])); };
    crc ^= at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24;
    crc = kSlicing[7][crc & 0xFF] ^ kSlicing[6][(crc >> 8) & 0xFF] ^ kSlicing[5][(crc >> 16) & 0xFF] ^
          kSlicing[4][crc >> 24] ^ kSlicing[3][at(4)] ^ kSlicing[2][at(5)] ^ kSlicing[1][at(6)] ^
          kSlicing[0][at(7)];
  }
  for (; size > 0; ++p, --size) crc = (crc >> 8) ^ kSlicing[0][(crc ^ static_cast<unsigned char>(*p)) & 0xFF];
  return crc ^ 0xFFFFFFFFu;
}

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
#if defined(__x86_64__)
  if (kHardware) return crc32c_sse42(bytes, before);
#endif
  return crc32c_portable(bytes, before);
}

}  // namespace sweep::tbwriter
