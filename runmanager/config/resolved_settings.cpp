#include "runmanager/config/resolved_settings.h"

#include <mutex>

namespace sweep {

struct ResolvedSettings::State {
  std::shared_ptr<const Json> common;
  std::vector<Part> parts;
  std::once_flag once;
  Json whole;  // what `common` and `parts` make, once it was asked for
};

ResolvedSettings::ResolvedSettings(Json json) : state_(std::make_shared<State>()) {
  state_->whole = std::move(json);
}

ResolvedSettings::ResolvedSettings(std::shared_ptr<const Json> common, std::vector<Part> parts)
    : state_(std::make_shared<State>()) {
  state_->common = std::move(common);
  state_->parts = std::move(parts);
}

const ResolvedSettings::Json& ResolvedSettings::json() const {
  static const Json null;
  if (state_ == nullptr) return null;
  std::call_once(state_->once, [state = state_.get()] {
    if (state->common == nullptr) return;
    Json whole = *state->common;
    for (const auto& [key, value] : state->parts) {
      if (value->is_null())
        whole.erase(key);
      else
        whole[key] = *value;
    }
    state->whole = std::move(whole);
    state->common.reset();
    state->parts.clear();
  });
  return state_->whole;
}

ResolvedSettings::Json& ResolvedSettings::operator[](std::string_view key) {
  json();
  if (state_.use_count() != 1) *this = ResolvedSettings(Json(json()));
  return state_->whole[std::string(key)];
}

}  // namespace sweep
