// The connection between a sweep and a worker process: a socket pair over which JSON travels, and the events
// of runs in that form. Both ends are the same executable, so messages may change with every version.
//
// A sweep sends, and a worker takes:
//   setup        once, first: {"directory", "timeout", "datasets": [the arguments of open_shared_dataset()]}
//   train        the next run; only after the end of the one before: WorkerTask, with RunOwner::id if its
//                lock's descriptor comes with the message. The record is all that the worker knows of the
//                run's settings. Without a provenance, the largest part of most records, it has that of the
//                run before.
//   threads      from now on, the current run may use this many threads
//   stop_signal  the current run is to stop because of this signal
// A worker sends events, the last of which before it exits is a LostRun or an UnwritableRun.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runmanager/records/run_event.h"

namespace sweep {

/// One end of a connection; owns its socket. Not thread-safe.
///
/// Framing: the length of the message as 4 bytes in the order of the machine, then the message as CBOR, which
/// keeps all numbers, and texts whatever their bytes. One of more than a gibibyte counts as damaged.
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
  bool send(const nlohmann::ordered_json& message, int descriptor = -1);

  /// Waits for the next message. Returns false if the other end is closed. Throws DataError if the bytes are
  /// no message.
  bool receive(nlohmann::ordered_json& message);

  enum class Arrived { kMessage, kNothing, kEnd };

  /// Gets the next message if it has arrived, without waiting. kEnd: the other end is closed, and all that it
  /// sent was received. Throws DataError as receive() does.
  Arrived poll(nlohmann::ordered_json& message);

  /// The last descriptor that came with a message, which the caller then has to close; -1 if none has come
  /// since the last call.
  int take_descriptor() { return std::exchange(descriptor_, -1); }

 private:
  ssize_t receive_bytes(int flags);

  /// Parses the next message if it is in the buffer as a whole.
  bool parse_next(nlohmann::ordered_json& message);

  int fd_;
  int descriptor_ = -1;
  std::string received_;    // bytes that have arrived
  std::size_t parsed_ = 0;  // bytes of received_ that belong to messages already returned
};

nlohmann::ordered_json message_of(const RunEvent& event);

/// The inverse. Throws DataError if the message is damaged.
RunEvent event_of(nlohmann::ordered_json message);

/// What an error that ended a run's training means: files could not be written, or the worker's state is
/// unknown.
RunEvent event_of(const std::exception& error);

}  // namespace sweep
