// Where a data set came from: the files that were read, and those that were passed over.
#pragma once

#include <filesystem>
#include <string>

namespace sweep {

/// A file that was read, or a folder of images as a whole; recorded with a run.
struct DataFile {
  std::filesystem::path path;
  /// 64 hexadecimal digits: of the decompressed content, unless the reader's header says otherwise.
  std::string sha256;
};

/// A file that was passed over.
struct SkippedFile {
  std::filesystem::path path;
  std::string reason;
};

}  // namespace sweep
