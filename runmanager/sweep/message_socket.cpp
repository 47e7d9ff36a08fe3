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
constexpr std::uint32_t kLargest = 1 << 30;

// Room for one descriptor.
struct Control {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> bytes{};
};

// Sends some of `bytes`, and the descriptor with the first of them.
ssize_t send_some(int fd, std::string_view bytes, int descriptor) {
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control;
  if (descriptor >= 0) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  return ::sendmsg(fd, &message, MSG_NOSIGNAL);
}

bool send_all(int fd, std::string_view bytes, int descriptor) {
  while (!bytes.empty()) {
    const ssize_t sent = send_some(fd, bytes, descriptor);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
    descriptor = -1;
  }
  return true;
}

}  // namespace

MessageSocket::~MessageSocket() {
  ::close(fd_);
  if (const int left = take_descriptor(); left >= 0) ::close(left);
}

bool MessageSocket::send(const MessageLite& message, int descriptor) {
  std::string bytes(kLengthBytes, '\0');
  message.AppendToString(&bytes);
  const auto length = static_cast<std::uint32_t>(bytes.size() - kLengthBytes);
  std::memcpy(bytes.data(), &length, kLengthBytes);
  if (send_all(fd_, bytes, descriptor)) return true;
  // The other end may wait for a message that is lost, or half of which has arrived.
  ::shutdown(fd_, SHUT_RDWR);
  return false;
}

bool MessageSocket::parse_next(MessageLite& message) {
  const std::size_t have = received_.size() - parsed_;
  std::uint32_t length = 0;
  if (have >= kLengthBytes) std::memcpy(&length, received_.data() + parsed_, kLengthBytes);
  if (length > kLargest) throw DataError("a message between a sweep and its worker is damaged");
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

// Appends what has arrived. Returns how much that is, 0 at the end, -1 and errno for an error.
ssize_t MessageSocket::receive_bytes(int flags) {
  std::array<char, 1 << 16> buffer;
  iovec part{.iov_base = buffer.data(), .iov_len = buffer.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t got = -1;
  do {
    got = ::recvmsg(fd_, &message, flags | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return got;
  received_.append(buffer.data(), static_cast<std::size_t>(got));
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
    if (const int before = std::exchange(descriptor_, descriptor); before >= 0) ::close(before);
  }
  return got;
}

bool MessageSocket::receive(MessageLite& message) {
  while (!parse_next(message)) {
    if (receive_bytes(0) <= 0) return false;
  }
  return true;
}

MessageSocket::Arrived MessageSocket::poll(MessageLite& message) {
  while (!parse_next(message)) {
    const ssize_t got = receive_bytes(MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Arrived::kNothing;
    if (got <= 0) return Arrived::kEnd;
  }
  return Arrived::kMessage;
}

}  // namespace sweep
