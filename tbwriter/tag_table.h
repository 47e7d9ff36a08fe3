// What has been written for each tag of a run: kind, metadata, last step. Not part of the installed
// interface.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tbwriter/error.h"
#include "tbwriter/writer_options.h"

namespace sweep::tbwriter {

/// The kind of data of a tag. TensorBoard shows only the first kind that is written for a tag.
enum class Kind {
  kScalar,
  kScalarTensor,
  kHistogram,
  kImage,
  kImages,
  kText,
  kAudio,
  kPrCurve,
  kMesh,
  kTensor
};

/// What has been written for one tag.
struct TagState {
  std::string name = {};  // as written: valid UTF-8
  Kind kind = Kind::kScalar;
  std::string metadata = {};  // serialised SummaryMetadata, until it is written; empty if not needed
  std::int64_t last_step = 0;
  bool has_step = false, warned = false;
};

/// Not thread-safe; SummaryWriter uses it while the queue is locked.
class TagTable {
 public:
  /// `warn` gets a message for people when steps of a tag do not increase.
  explicit TagTable(std::function<void(const std::string&)> warn) : warn_(std::move(warn)) {}

  /// Throws UsageError if TensorBoard could not show a point with this tag, kind and step. Changes nothing.
  void check(std::string_view tag, Kind kind, std::int64_t step) const { find(tag, kind, step); }

  /// Does what check() does, then returns the tag's state. The details and plugin content of the first point
  /// become the metadata of the tag.
  TagState& state(std::string_view tag, Kind kind, std::int64_t step, const Details& details,
                  std::string_view plugin_content);

  /// Records that a point has been encoded, with the tag's metadata.
  void record(TagState& state, std::int64_t step);

  /// From now on refuses scalars with steps that would break TensorBoard's HParams tab. Throws UsageError if
  /// one has been recorded already.
  void limit_steps();

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  const TagState* find(std::string_view tag, Kind kind, std::int64_t step) const;

  std::function<void(const std::string&)> warn_;
  std::unordered_map<std::string, TagState, TextHash, std::equal_to<>> tags_;
  std::int64_t largest_step_ = 0;  // of a scalar
  bool limited_ = false;
};

}  // namespace sweep::tbwriter
