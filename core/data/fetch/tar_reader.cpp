#include "core/data/fetch/tar_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "core/base/error.h"

namespace sweep {
namespace {

constexpr std::size_t kBlockBytes = 512;
using Block = std::array<std::uint8_t, kBlockBytes>;

struct Field {
  std::size_t offset, bytes;
};
// "ustar Interchange Format" of POSIX.1-2001, pax.
constexpr Field kName = {0, 100}, kSize = {124, 12}, kChecksum = {148, 8};
constexpr std::size_t kType = 156;

std::string_view field_text(const Block& block, Field field) {
  const char* text = reinterpret_cast<const char*>(block.data()) + field.offset;
  return {text, ::strnlen(text, field.bytes)};
}

// An octal number with blanks around it; nothing for anything else, also for GNU's binary sizes from 8 GiB
// on.
std::optional<std::uint64_t> field_number(const Block& block, Field field) {
  std::string_view text = field_text(block, field);
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;  // of at most 12 digits of 3 bits
  for (const char digit : text) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(digit - '0');
  }
  return value;
}

// The sum of all bytes, with blanks in the place of the checksum.
std::uint64_t checksum_of(const Block& block) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBlockBytes; ++i) {
    const bool is_own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.bytes;
    sum += is_own ? std::uint64_t{' '} : block[i];
  }
  return sum;
}

}  // namespace

void TarReader::fail(const std::string& problem) const { throw DataError(in_.name() + ": " + problem); }

void TarReader::skip(std::uint64_t bytes) {
  std::array<std::uint8_t, 16 * kBlockBytes> ignored;
  while (bytes > 0) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, ignored.size()));
    if (in_.read(std::span(ignored).first(wanted)) != wanted) fail("the tar archive is cut");
    bytes -= wanted;
  }
}

std::optional<TarMember> TarReader::next() {
  for (;;) {
    skip(left_);
    skip(padding_);
    left_ = padding_ = 0;
    Block block;
    const std::size_t got = in_.read(block);
    if (got != 0 && got != kBlockBytes) fail("the tar archive is cut");
    // Two blocks of zeros end an archive; some writers leave them out.
    const bool is_end = std::all_of(block.begin(), block.end(), [](std::uint8_t byte) { return byte == 0; });
    if (got == 0 || is_end) return std::nullopt;
    if (field_number(block, kChecksum) != checksum_of(block)) fail("is no tar archive, or is damaged");
    const std::optional<std::uint64_t> bytes = field_number(block, kSize);
    if (!bytes) fail("the tar archive has a member without a size");
    left_ = *bytes;
    padding_ = (kBlockBytes - *bytes % kBlockBytes) % kBlockBytes;
    if (block[kType] == '0' || block[kType] == 0)
      return TarMember{std::string(field_text(block, kName)), left_};
  }
}

std::size_t TarReader::read(std::span<std::uint8_t> out) {
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left_, out.size()));
  if (in_.read(out.first(wanted)) != wanted) fail("the tar archive is cut");
  left_ -= wanted;
  return wanted;
}

}  // namespace sweep
