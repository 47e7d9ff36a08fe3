// The connection between a sweep and a worker process: a socket pair over which messages of
// proto/worker.proto travel, each after its length.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace google::protobuf {
class MessageLite;
}

namespace sweep {

/// One end of a connection; owns its socket. Not thread-safe.
///
/// Framing: the length of the serialized message as 4 bytes in the order of the machine, then the message.
/// One of more than a gibibyte counts as damaged.
class MessageSocket {
 public:
  /// Takes ownership of `fd`.
  explicit MessageSocket(int fd) : fd_(fd) {}
  ~MessageSocket();
  MessageSocket(const MessageSocket&) = delete;
  MessageSocket& operator=(const MessageSocket&) = delete;

  int fd() const { return fd_; }

  /// Waits while the other end does not read. Returns false if the other end is closed or the message cannot
  /// be sent; then the connection is shut down, so that neither end waits for what is lost. `descriptor`, if
  /// it is one, is sent as well.
  bool send(const google::protobuf::MessageLite& message, int descriptor = -1);

  /// Waits for the next message. Returns false if the other end is closed. Throws DataError if the bytes are
  /// not a message of that type.
  bool receive(google::protobuf::MessageLite& message);

  enum class Arrived { kMessage, kNothing, kEnd };

  /// Gets the next message if it has arrived, without waiting. kEnd: the other end is closed, and all that it
  /// sent was received. Throws DataError as receive() does.
  Arrived poll(google::protobuf::MessageLite& message);

  /// The last descriptor that came with a message, which the caller then has to close; -1 if none has come
  /// since the last call.
  int take_descriptor() { return std::exchange(descriptor_, -1); }

 private:
  ssize_t receive_bytes(int flags);

  /// Parses the next message if it is in the buffer as a whole.
  bool parse_next(google::protobuf::MessageLite& message);

  int fd_;
  int descriptor_ = -1;
  std::string received_;    // bytes that have arrived
  std::size_t parsed_ = 0;  // bytes of received_ that belong to messages already returned
};

}  // namespace sweep
