// The exception for wrong use of the writer; failures of the disk throw IoError.
#pragma once

#include "core/base/error.h"

namespace sweep::tbwriter {

/// A call whose data TensorBoard would show wrongly or not at all: an empty tag, a tag that
/// already has another kind of data, sizes that do not match, a call after close(). Nothing is
/// written; the file stays valid.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace sweep::tbwriter
