// The connection between a sweep and a worker process: the messages of proto/worker.proto over a pair of
// sockets, each behind its length.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace google::protobuf {
class MessageLite;
}

namespace sweep {

/// One end of a connection; owns its socket. One thread may send while another receives.
class MessageSocket {
 public:
  /// `largest`: bytes of a message that may be received; a longer one is damaged.
  explicit MessageSocket(int fd, std::size_t largest = std::size_t{1} << 30) : fd_(fd), largest_(largest) {}
  ~MessageSocket();
  MessageSocket(MessageSocket&& other) noexcept;
  MessageSocket& operator=(MessageSocket&&) = delete;
  MessageSocket(const MessageSocket&) = delete;

  int fd() const { return fd_; }

  /// Returns whether the other end is still there. Waits if it does not read.
  bool send(const google::protobuf::MessageLite& message);

  /// Waits for the next message; false if the other end is gone. Throws DataError for what is no message of
  /// that type.
  bool receive(google::protobuf::MessageLite& message);

  enum class Arrived { kMessage, kNothing, kEnd };

  /// The next message of those that have come, without waiting. kEnd: the other end has closed, and
  /// everything that it sent has been taken. Throws DataError as receive() does.
  Arrived poll(google::protobuf::MessageLite& message);

 private:
  bool take(google::protobuf::MessageLite& message);

  int fd_;
  std::size_t largest_;
  std::string received_;
  std::size_t taken_ = 0;  // bytes of received_
};

}  // namespace sweep
