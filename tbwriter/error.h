// What is thrown for a wrong use of the writer, as opposed to a failure of the disk.
#pragma once

#include "core/base/error.h"

namespace sweep::tbwriter {

/// A call that could only lead to a file that TensorBoard shows wrongly or not at all: an empty tag, a tag
/// that already belongs to another kind of data, sizes that do not fit, a call after close(). The file stays
/// valid.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace sweep::tbwriter
