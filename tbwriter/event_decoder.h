// Decodes scalars, hyperparameters, texts and images from events of any program. Ignores everything else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tbwriter/hparams.h"

namespace sweep::tbwriter {

/// An encoded image. The view points into the payload.
struct DecodedImage {
  std::int64_t width = 0, height = 0;  // in pixels, as the event says
  std::string_view bytes = {};         // PNG, or what else the writer chose
};

/// One value of an event. The views point into the payload.
struct DecodedValue {
  std::string_view tag = {};
  std::string_view plugin = {};  // from its metadata, which only the first value of a tag has; "" without
  std::string_view plugin_content = {};  // the plugin's encoded message
  std::optional<double> scalar = {};     // a simple_value, or a tensor of one number
  std::optional<DecodedImage> image = {};
  std::optional<std::string_view> text = {};  // the first string of a tensor
};

/// One event. The views point into the payload.
struct DecodedEvent {
  double wall_time = 0;  // seconds since 1970
  std::int64_t step = 0;
  std::string_view file_version = {};
  bool session_start = false;  // older records of the run with this step or a later one are void
  std::vector<DecodedValue> values = {};
};

/// Decodes a record's payload. Throws DataError if it is not an Event. Thread-safe.
DecodedEvent decode_event(std::string_view payload);

/// The hparams session of a run.
struct DecodedSession {
  HParams hparams = {};
  std::optional<double> start_time = {};
  std::optional<SessionStatus> status = {};
  std::optional<double> end_time = {};
};

/// Adds the content of one hparams record to `session`. Returns whether it has the start or end of a session.
/// Throws DataError if it is not an HParamsPluginData.
bool decode_session(std::string_view plugin_content, DecodedSession& session);

}  // namespace sweep::tbwriter
