#include "runmanager/sweep/message_socket.h"

#include <google/protobuf/message_lite.h>
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

using google::protobuf::MessageLite;

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
    : fd_(std::exchange(other.fd_, -1)),
      largest_(other.largest_),
      received_(std::move(other.received_)),
      parsed_(other.parsed_) {}

MessageSocket::~MessageSocket() {
  if (fd_ >= 0) ::close(fd_);
}

bool MessageSocket::send(const MessageLite& message) {
  std::string bytes(kLengthBytes, '\0');
  message.AppendToString(&bytes);
  const auto length = static_cast<std::uint32_t>(bytes.size() - kLengthBytes);
  std::memcpy(bytes.data(), &length, kLengthBytes);
  if (send_all(fd_, bytes)) return true;
  // The other end may wait for a message that is lost, or half of which has arrived.
  ::shutdown(fd_, SHUT_RDWR);
  return false;
}

bool MessageSocket::parse_next(MessageLite& message) {
  const std::size_t have = received_.size() - parsed_;
  std::uint32_t length = 0;
  if (have >= kLengthBytes) std::memcpy(&length, received_.data() + parsed_, kLengthBytes);
  if (length > largest_) throw DataError("a message between a sweep and its worker is damaged");
  if (have < kLengthBytes || have - kLengthBytes < length) {
    // Only now, so that a buffer of many small messages is moved once.
    received_.erase(0, parsed_);
    parsed_ = 0;
    return false;
  }
  const char* bytes = received_.data() + parsed_ + kLengthBytes;
  parsed_ += kLengthBytes + length;
  if (!message.ParseFromArray(bytes, static_cast<int>(length)))
    throw DataError("a message between a sweep and its worker is damaged");
  return true;
}

bool MessageSocket::receive(MessageLite& message) {
  std::array<char, 1 << 16> buffer;
  for (;;) {
    if (parse_next(message)) return true;
    const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    received_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

MessageSocket::Arrived MessageSocket::poll(MessageLite& message) {
  std::array<char, 1 << 16> buffer;
  for (;;) {
    if (parse_next(message)) return Arrived::kMessage;
    const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Arrived::kNothing;
    if (got <= 0) return Arrived::kEnd;
    received_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace sweep
