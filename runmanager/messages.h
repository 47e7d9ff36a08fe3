// What a sweep and its worker processes tell each other: JSON objects over a pair of sockets, each behind its
// length.
//
// JSON, because what travels (configurations and records of runs) is JSON in the sweep's files already, with
// readers that are tested there; both ends are the same executable, so there are no versions to agree on.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace sweep {

using Message = nlohmann::ordered_json;

/// One end of a connection; owns its socket. One thread may send while another receives.
class MessageSocket {
 public:
  explicit MessageSocket(int fd) : fd_(fd) {}
  ~MessageSocket();
  MessageSocket(MessageSocket&& other) noexcept;
  MessageSocket& operator=(MessageSocket&&) = delete;
  MessageSocket(const MessageSocket&) = delete;

  int fd() const { return fd_; }

  /// Returns whether the other end is still there. Waits if it does not read.
  bool send(const Message& message);

  /// Waits for the next message; nothing if the other end is gone. Throws DataError for what is no message.
  std::optional<Message> receive();

  /// The next message of those that have come, without waiting; nothing if there is none. `gone` becomes true
  /// when the other end has closed and everything that it sent has been taken. Throws DataError.
  std::optional<Message> poll(bool& gone);

 private:
  std::optional<Message> take();

  int fd_;
  std::string received_;
  std::size_t taken_ = 0;  // bytes of received_
};

}  // namespace sweep
