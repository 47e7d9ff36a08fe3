// SHA-256 of what comes piece by piece.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct sha256_ctx;  // of nettle

namespace sweep {

/// Computes SHA-256 incrementally. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::span<const std::uint8_t> bytes);
  void update(std::string_view text) {
    update(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
  }
  /// Returns 64 lower-case hexadecimal digits. Call once, after the last update().
  std::string finish();

 private:
  std::shared_ptr<sha256_ctx> state_;  // its own
};

/// The SHA-256 of `bytes`.
std::string sha256_of(std::span<const std::uint8_t> bytes);

/// "00 9f": the bytes as hexadecimal numbers with `separator` between them.
std::string hexadecimal(std::span<const std::uint8_t> bytes, std::string_view separator = "");

}  // namespace sweep
