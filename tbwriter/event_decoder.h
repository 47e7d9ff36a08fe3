// What an event says, of any program's file: scalars and hyperparameters, for export. The rest is passed
// over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tbwriter/hparams.h"

namespace sweep::tbwriter {

/// One value of an event. The views are into the payload.
struct DecodedValue {
  std::string_view tag = {};
  std::string_view plugin = {};  // of its metadata; "" where there is none, as after a tag's first value
  std::string_view plugin_content = {};  // the plugin's own message
  std::optional<double> scalar = {};     // a simple_value, or a tensor of one number
};

struct DecodedEvent {
  double wall_time = 0;  // seconds since 1970
  std::int64_t step = 0;
  std::string_view file_version = {};
  bool session_start = false;  // what older records of the run have from `step` on no longer counts
  std::vector<DecodedValue> values = {};
};

/// Decodes a record's payload. Throws DataError if it is no Event.
DecodedEvent decode_event(std::string_view payload);

/// What a run's records of the plugin "hparams" say.
struct DecodedSession {
  HParams hparams = {};
  std::optional<double> start_time = {};
  std::optional<SessionStatus> status = {};
  std::optional<double> end_time = {};
};

/// Adds what one record's plugin content says to `session`. Returns whether it was about a session.
/// Throws DataError if it is no HParamsPluginData.
bool decode_session(std::string_view plugin_content, DecodedSession& session);

}  // namespace sweep::tbwriter
