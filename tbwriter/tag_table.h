// What a run's files have of each tag: its kind, its metadata, its last step. Not part of the installed
// interface.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tbwriter/summary_writer.h"

namespace sweep::tbwriter {

/// Kinds of data that a tag can hold; TensorBoard shows only the first one of a tag.
enum class Kind { kScalar, kHistogram, kImage, kImages, kText, kAudio, kPrCurve, kMesh, kTensor };

struct TagState {
  static constexpr unsigned kNoFile = std::numeric_limits<unsigned>::max();

  std::string name = {};  // as written: valid UTF-8
  Kind kind = Kind::kScalar;
  std::string metadata = {};         // SummaryMetadata; empty: none needed
  unsigned metadata_file = kNoFile;  // the file that has it
  std::int64_t last_step = 0;
  bool has_step = false, warned = false;

  bool needs_metadata(unsigned file) const { return !metadata.empty() && metadata_file != file; }
};

/// Not thread-safe; the writer uses it with its queue locked.
class TagTable {
 public:
  explicit TagTable(std::function<void(const std::string&)> warn) : warn_(std::move(warn)) {}

  /// Throws UsageError if a point of this tag, kind and step cannot be shown. Changes nothing.
  void check(std::string_view tag, Kind kind, std::int64_t step) const { find(tag, kind, step); }

  /// check(), then notes the point. The first point's details and plugin content become the tag's metadata.
  TagState& use(std::string_view tag, Kind kind, std::int64_t step, const Details& details,
                std::string_view plugin_content = {});

  /// From now on refuses scalars with steps that break TensorBoard's HParams tab; throws UsageError if there
  /// is one.
  void limit_steps();

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  const TagState* find(std::string_view tag, Kind kind, std::int64_t step) const;
  TagState& add(std::string_view tag, Kind kind, const Details& details, std::string_view plugin_content);

  std::function<void(const std::string&)> warn_;
  std::unordered_map<std::string, TagState, TextHash, std::equal_to<>> tags_;
  std::int64_t largest_step_ = 0;  // of a scalar
  bool limited_ = false;
};

}  // namespace sweep::tbwriter
