// One file with the samples of a decoded data set, to be mapped into memory.
//
// It holds a header of 128 bytes (magic, sizes, SHA-256 of the description), from the next page on the
// arrays, each aligned to 64 bytes: the samples of each part, then the classes of each; then a description in
// JSON, which is known last. Opening a file checks the description and all sizes; it does not read the
// samples.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/data/readers/image_folder.h"
#include "core/data/readers/raw_data.h"

namespace sweep {

/// Writes a file while its samples are decoded. Not thread-safe.
class CacheFileWriter final : public SampleStore {
 public:
  /// Begins a file for samples of at most `most_bytes` together, whose room on the disk it takes at once if
  /// the file system can. Throws IoError, as the functions below.
  CacheFileWriter(const std::filesystem::path& path, std::uint64_t most_bytes);

  void begin_part(std::size_t most_bytes) override;
  void append(std::span<const std::uint8_t> bytes) override;
  SampleValues end_part() override;

  /// Writes the rest of `data`, the parts of which were appended, for `key`, and lets its samples be the
  /// file's memory, which stays until the last of them is gone. Paths in `data` that are below `root` are
  /// those of whoever reads the file.
  void finish(const std::string& key, const std::filesystem::path& root, RawData& data);

  /// Gives the file its name: a reader sees the whole file or none. Without this call it vanishes with the
  /// samples. After finish().
  void publish() { file_.publish(); }

 private:
  void write(std::span<const std::uint8_t> bytes);
  void align(std::size_t alignment);

  NewFile file_;
  std::uint64_t written_ = 0;          // bytes of the arrays
  std::vector<std::uint64_t> begins_;  // of each part's samples in the arrays
};

/// Maps what a CacheFileWriter wrote, with `root` before the paths. The samples are the file's memory, which
/// stays until the last of them is gone. Returns nothing if there is no such file, if it was written for
/// another key or by another version, or if it is damaged. Does not throw.
std::optional<RawData> read_cache_file(const std::filesystem::path& path, const std::string& key,
                                       const std::filesystem::path& root);

}  // namespace sweep
