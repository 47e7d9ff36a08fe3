// The exception for wrong use of the writer; failures of the disk throw IoError.
#pragma once

#include <string>
#include <type_traits>

#include "core/base/error.h"

namespace sweep::tbwriter {

/// A call whose data TensorBoard would show wrongly or not at all: an empty tag, a tag that
/// already has another kind of data, sizes that do not match, a call after close(). Nothing is
/// written; the file stays valid.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Throws UsageError unless `holds`; the message is `parts`, texts and numbers, one after the other.
template <class... Parts>
void require(bool holds, const Parts&... parts) {
  if (holds) return;
  const auto text_of = [](const auto& part) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(part)>>) {
      return std::to_string(part);
    } else {
      return std::string(part);
    }
  };
  throw UsageError((text_of(parts) + ...));
}

}  // namespace sweep::tbwriter
