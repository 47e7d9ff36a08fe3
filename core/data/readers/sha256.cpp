#include "core/data/readers/sha256.h"

#include <fmt/format.h>
#include <nettle/sha2.h>

#include <array>

namespace sweep {

// Uses nettle because it does not allocate: libcrypto 3 crashes if an allocation fails.
Sha256::Sha256() : state_(std::make_shared<sha256_ctx>()) { sha256_init(state_.get()); }

void Sha256::update(std::span<const std::uint8_t> bytes) {
  sha256_update(state_.get(), bytes.size(), bytes.data());
}

std::string Sha256::finish() {
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest;
  sha256_digest(state_.get(), digest.size(), digest.data());
  return hexadecimal(digest);
}

std::string sha256_of(std::span<const std::uint8_t> bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.finish();
}

std::string hexadecimal(std::span<const std::uint8_t> bytes, std::string_view separator) {
  return fmt::format("{:02x}", fmt::join(bytes.begin(), bytes.end(), separator));
}

}  // namespace sweep
