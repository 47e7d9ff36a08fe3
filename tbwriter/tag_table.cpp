#include "tbwriter/tag_table.h"

#include <algorithm>
#include <limits>

#include "core/base/utf8.h"
#include "tbwriter/proto_encoding.h"

namespace sweep::tbwriter {
namespace {

// TensorBoard stores the step of a metric in 32 bits; its HParams tab fails for all runs if one does not fit.
constexpr std::int64_t kLargestMetricStep = std::numeric_limits<std::int32_t>::max();

struct KindTraits {
  const char* name;    // in messages
  const char* plugin;  // in metadata
  DataClass data_class;
  bool needs_metadata;  // TensorBoard recognises the other kinds without metadata
};

constexpr KindTraits kKinds[] = {
    {"a scalar", "scalars", DataClass::kScalar, false},
    {"a scalar of the new style", "scalars", DataClass::kScalar, true},
    {"a histogram", "histograms", DataClass::kTensor, false},
    {"an image", "images", DataClass::kBlobs, false},
    {"a batch of images", "images", DataClass::kBlobs, true},
    {"text", "text", DataClass::kTensor, true},
    {"audio", "audio", DataClass::kBlobs, true},
    {"a PR curve", "pr_curves", DataClass::kTensor, true},
    {"a mesh", "mesh", DataClass::kTensor, true},
    {"a tensor", "tensor", DataClass::kTensor, true},
};

const KindTraits& traits(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

bool is_scalar(Kind kind) { return kind == Kind::kScalar || kind == Kind::kScalarTensor; }

[[noreturn]] void refuse_step(std::int64_t step) {
  throw UsageError("step " + std::to_string(step) + " of a run with hparams is above " +
                   std::to_string(kLargestMetricStep) + "; TensorBoard would show no run's hparams at all");
}

}  // namespace

const TagState* TagTable::find(std::string_view tag, Kind kind, std::int64_t step) const {
  if (tag.empty()) throw UsageError("a tag is empty; TensorBoard could not show it");
  if (limited_ && is_scalar(kind) && step > kLargestMetricStep) refuse_step(step);
  const auto found = tags_.find(tag);
  if (found == tags_.end()) return nullptr;
  if (found->second.kind != kind) {
    throw UsageError("\"" + std::string(tag) + "\" is " + traits(found->second.kind).name +
                     " and cannot become " + traits(kind).name +
                     ": TensorBoard would show only the first; use another tag");
  }
  return &found->second;
}

TagState& TagTable::state(std::string_view tag, Kind kind, std::int64_t step, const Details& details,
                          std::string_view plugin_content) {
  // The table is not const, so neither are its states.
  if (const TagState* known = find(tag, kind, step)) return const_cast<TagState&>(*known);
  TagState state{.name = valid_utf8(tag), .kind = kind};
  const KindTraits& kind_traits = traits(kind);
  if (kind_traits.needs_metadata || !details.description.empty() || !details.display_name.empty()) {
    state.metadata = encode_metadata(kind_traits.plugin, plugin_content, kind_traits.data_class,
                                     details.display_name, details.description);
  }
  return tags_.emplace(std::string(tag), std::move(state)).first->second;
}

void TagTable::record(TagState& state, std::int64_t step) {
  if (state.has_step && step <= state.last_step && !state.warned) {
    state.warned = true;
    warn_("\"" + state.name + "\": step " + std::to_string(step) + " comes after step " +
          std::to_string(state.last_step) + "; TensorBoard may hide points unless steps grow");
  }
  state.metadata.clear();
  state.has_step = true;
  state.last_step = step;
  if (is_scalar(state.kind)) largest_step_ = std::max(largest_step_, step);
}

void TagTable::limit_steps() {
  if (largest_step_ > kLargestMetricStep) refuse_step(largest_step_);
  limited_ = true;
}

}  // namespace sweep::tbwriter
