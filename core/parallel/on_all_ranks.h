// What no rank of a group may fail in alone: the others would wait for it.
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "core/parallel/communicator.h"

namespace sweep {

/// A rank cannot do its part of something, and all ranks have this error. The group can still be used, unless
/// its ranks are threads.
class ReplicaError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// Calls `work` on every rank, each of which calls this, and returns when all have done it. `work` does not
/// use `group`. If ranks are processes and it throws on one of them, all throw ReplicaError with the number
/// of the rank. If they are threads, its error is thrown as it is, for the caller to tell the others.
void on_all_ranks(Communicator& group, const std::function<void()>& work);

/// What the other ranks are told of an error.
std::string reason_of(const std::exception& error);

}  // namespace sweep
