#include "runmanager/messages.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace sweep {
namespace {

constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace

MessageSocket::MessageSocket(MessageSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), received_(std::move(other.received_)), taken_(other.taken_) {}

MessageSocket::~MessageSocket() {
  if (fd_ >= 0) ::close(fd_);
}

bool MessageSocket::send(const Message& message) {
  const std::string text = message.dump(-1, ' ', false, Message::error_handler_t::replace);
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kLengthBytes);
  return send_all(fd_, bytes + text);
}

std::optional<Message> MessageSocket::take() {
  const std::size_t have = received_.size() - taken_;
  std::uint32_t length = 0;
  if (have >= kLengthBytes) std::memcpy(&length, received_.data() + taken_, kLengthBytes);
  if (have < kLengthBytes || have - kLengthBytes < length) {
    received_.erase(0, taken_);
    taken_ = 0;
    return std::nullopt;
  }
  const std::string_view text = std::string_view(received_).substr(taken_ + kLengthBytes, length);
  taken_ += kLengthBytes + length;
  Message message = Message::parse(text, nullptr, false);
  if (!message.is_object()) throw DataError("a message between a sweep and its worker is damaged");
  return message;
}

std::optional<Message> MessageSocket::receive() {
  std::array<char, 1 << 16> buffer;
  for (;;) {
    if (auto message = take()) return message;
    const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    received_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::optional<Message> MessageSocket::poll(bool& gone) {
  std::array<char, 1 << 16> buffer;
  for (;;) {
    if (auto message = take()) return message;
    const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (got <= 0) {
      gone = true;
      return std::nullopt;
    }
    received_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace sweep
