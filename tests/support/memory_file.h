// A file in memory, for readers of files.
#pragma once

#include <sys/mman.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/file.h"
#include "core/data/readers/input_file.h"

namespace sweep::test {

class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(::memfd_create("file", MFD_CLOEXEC)) {
    write_all(file_.get(), bytes, "a file in memory");
  }
  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

 private:
  FileDescriptor file_;
};

/// `bytes`, opened as a file that messages call `name`.
inline InputFile input_file(std::string_view bytes, std::string name = "FILE") {
  return InputFile(MemoryFile(bytes).path(), std::move(name));
}

}  // namespace sweep::test
