// An existing file that cannot be read.
#pragma once

#include "core/base/error.h"

namespace sweep {

/// An existing file that cannot be opened or read now: no permission, too many open files, an error of the
/// disk. Its content may be whole, so it must not be overwritten. Names the file and the reason.
class ReadError : public DataError {
 public:
  using DataError::DataError;
};

}  // namespace sweep
