#include "tbwriter/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace sweep::tbwriter {
namespace {

#if defined(__x86_64__)
const bool kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;

[[gnu::target("sse4.2")]] std::uint32_t update_by_instruction(std::string_view bytes, std::uint32_t crc) {
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    crc = static_cast<std::uint32_t>(_mm_crc32_u64(crc, word));
  }
  for (const char byte : bytes) crc = _mm_crc32_u8(crc, static_cast<unsigned char>(byte));
  return crc;
}
#endif

// Neither inverts what it is given and returns.
std::uint32_t update(std::string_view bytes, std::uint32_t crc) {
#if defined(__x86_64__)
  // For records of scalars, which are most, ISA-L takes ten times as long: it walks their ends byte by byte.
  if (bytes.size() < 256 && kHasInstruction) return update_by_instruction(bytes, crc);
#endif
  constexpr std::size_t kMaxBytes = std::numeric_limits<int>::max();
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kMaxBytes))) {
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));  // is only read
    crc = crc32_iscsi(data, static_cast<int>(std::min(bytes.size(), kMaxBytes)), crc);
  }
  return crc;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) { return ~update(bytes, ~before); }

}  // namespace sweep::tbwriter
