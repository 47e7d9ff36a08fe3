// Events of a run as messages of proto/worker.proto, and back.
#pragma once

#include <exception>

#include "proto/worker.pb.h"
#include "runmanager/records/run_event.h"

namespace sweep {

proto::FromWorker message_of(const RunEvent& event);

/// The inverse. Throws DataError if the message is damaged.
RunEvent event_of(const proto::FromWorker& message);

/// What an error that ended a run's training means: files could not be written, or the worker's state is
/// unknown.
RunEvent event_of(const std::exception& error);

}  // namespace sweep
