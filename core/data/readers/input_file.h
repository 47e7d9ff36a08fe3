// Opening the files of a data set: regular files only, with limits on what they may ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <istream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/readers/content_reader.h"

namespace sweep {

/// `text` between double quotes, for messages.
std::string quoted_name(std::string_view text);

/// Opens a regular file. Throws DataError for anything else, a pipe for example, which would be waited for.
std::ifstream open_data_file(const std::filesystem::path& path);

/// Size in bytes of an open file; reading goes on at its start.
std::uint64_t stream_size(std::istream& in, const std::string& name);

/// Returns the bytes of a regular file. Throws DataError if it is larger than `most_bytes` or cannot be read.
std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path, std::uint64_t most_bytes);

/// The SHA-256 of the bytes of a regular file. Throws DataError.
std::string file_sha256(const std::filesystem::path& path);

/// The first bytes of a regular file, decompressed: at most `count`. Returns an empty string if it cannot be
/// read; for telling formats apart.
std::string first_bytes(const std::filesystem::path& path, std::size_t count);

/// The visible regular files of a directory whose names end in one of `endings`, sorted by name.
std::vector<std::filesystem::path> files_with_ending(const std::filesystem::path& directory,
                                                     const std::vector<std::string>& endings);

/// A data file that may be gzip-compressed, read from its start to its end. Not thread-safe.
class InputFile {
 public:
  /// Throws DataError if the file cannot be opened.
  explicit InputFile(const std::filesystem::path& path);
  /// From a seekable stream that outlives this; `name` stands for the file in messages.
  InputFile(std::istream& in, std::string name);

  /// Fills `out` and returns out.size(), or less at the end of the content. Throws DataError if the file
  /// is damaged or a decompression bomb: content of more than 16 MiB that is more than 100 times the
  /// file's size.
  std::size_t read(std::span<std::uint8_t> out);

  /// The file cannot hold more content than this.
  std::uint64_t most_content() const { return content_->most_content(); }
  const std::string& name() const { return name_; }

  /// SHA-256 of the decompressed content. Call once, after read() has reached the end.
  std::string sha256() { return content_->sha256(); }

 private:
  std::ifstream file_;
  std::string name_;
  std::unique_ptr<ContentReader> content_;
  std::uint64_t most_expanded_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace sweep
