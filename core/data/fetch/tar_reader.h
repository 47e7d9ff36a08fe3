// Reads tar archives (POSIX.1-2001 ustar, and what GNU tar writes) from their start to their end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/data/readers/input_file.h"

namespace sweep {

struct TarMember {
  std::string name;         // with its folders, as the archive has it: not to be trusted as a path
  std::uint64_t bytes = 0;  // of its content
};

/// Walks over the regular files of an archive. Folders, links and devices are passed over, and so are the
/// records that give other members long names: those keep the short ones. Not thread-safe.
class TarReader {
 public:
  /// `in` has to outlive this; it may be compressed by gzip.
  explicit TarReader(InputFile& in) : in_(in) {}

  /// Goes to the next regular file, over what is left of this one. Nothing at the end of the archive. Throws
  /// DataError if the archive is damaged or cut.
  std::optional<TarMember> next();

  /// Fills `out` with content of the member; returns less than out.size() only at the end of it. Throws
  /// DataError if the archive is cut.
  std::size_t read(std::span<std::uint8_t> out);

 private:
  void skip(std::uint64_t bytes);
  [[noreturn]] void fail(const std::string& problem) const;

  InputFile& in_;
  std::uint64_t left_ = 0;     // bytes of the member that were not read
  std::uint64_t padding_ = 0;  // bytes behind it, up to a whole block
};

}  // namespace sweep
