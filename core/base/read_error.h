// A file that is there and cannot be read.
#pragma once

#include "core/base/error.h"

namespace sweep {

/// A file that is there and cannot be opened or read now: no permission, too many open files, an error of the
/// disk. Its content may be whole, so nothing may be put in its place. Names the file and the reason.
class ReadError : public DataError {
 public:
  using DataError::DataError;
};

}  // namespace sweep
