#include "tbwriter/hparams.h"

#include <cmath>
#include <set>
#include <string_view>

#include "core/base/utf8.h"
#include "tbwriter/error.h"
#include "tbwriter/proto_encoding.h"
#include "tbwriter/wire.h"

namespace sweep::tbwriter {
namespace {

// TensorBoard would drop a number that is not finite from the row but make the column's range NaN. A
// null_value makes it fail where the column is sorted or filtered.
bool is_shown(const HParamValue& value) {
  const auto* number = std::get_if<double>(&value);
  return number != nullptr ? std::isfinite(*number) : !std::holds_alternative<std::nullptr_t>(value);
}

// google.protobuf.Value of one that is shown. Members of a oneof are written even if they are 0, false or
// empty.
std::string encode_value(const HParamValue& value) {
  std::string message;
  if (const auto* flag = std::get_if<bool>(&value)) {
    wire::always_integer(message, 4, *flag ? 1 : 0);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    wire::always_bytes(message, 3, valid_utf8(*text));
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    wire::always_double(message, 2, static_cast<double>(*integer));
  } else {
    wire::always_double(message, 2, std::get<double>(value));
  }
  return message;
}

std::string encode_info(const HParamInfo& info) {
  std::string message;
  wire::bytes(message, 1, valid_utf8(info.name));
  wire::bytes(message, 2, valid_utf8(info.display_name));
  wire::bytes(message, 3, valid_utf8(info.description));
  wire::integer(message, 4, static_cast<int>(info.type));
  if (!info.discrete.empty()) {
    std::string list;
    for (const HParamValue& value : info.discrete) {
      if (is_shown(value)) wire::always_bytes(list, 1, encode_value(value));
    }
    wire::always_bytes(message, 5, list);
  } else if (info.interval) {
    std::string interval;
    wire::real(interval, 1, info.interval->first);
    wire::real(interval, 2, info.interval->second);
    wire::always_bytes(message, 6, interval);
  }
  wire::integer(message, 7, info.differs ? 1 : 0);
  return message;
}

std::string encode_metric(const MetricInfo& info) {
  std::string message, name;
  wire::bytes(name, 1, valid_utf8(info.group));
  wire::bytes(name, 2, valid_utf8(info.tag));
  wire::always_bytes(message, 1, name);
  wire::bytes(message, 3, valid_utf8(info.display_name));
  wire::bytes(message, 4, valid_utf8(info.description));
  return message;
}

// HParamsPluginData with one member of its oneof; version 0 is the default and not written.
std::string plugin_data(std::uint32_t member, std::string_view content) {
  std::string message;
  wire::always_bytes(message, member, content);
  return message;
}

}  // namespace

std::string encode_session_start(const HParams& hparams, double start_time) {
  std::string session;
  std::set<std::string_view> names;
  for (const auto& [name, value] : hparams) {
    if (name.empty()) throw UsageError("a hyperparameter has no name");
    if (!names.insert(name).second) throw UsageError("the hyperparameter " + name + " is given twice");
    if (!is_shown(value)) continue;
    std::string entry;
    wire::always_bytes(entry, 1, valid_utf8(name));
    wire::always_bytes(entry, 2, encode_value(value));
    wire::always_bytes(session, 1, entry);
  }
  wire::real(session, 5, start_time);
  return plugin_data(3, session);
}

std::string encode_session_end(SessionStatus status, double end_time) {
  std::string session;
  wire::integer(session, 1, static_cast<int>(status));
  wire::real(session, 2, end_time);
  return plugin_data(4, session);
}

std::string encode_experiment(const HParamsExperiment& experiment, double created) {
  std::string message;
  wire::bytes(message, 1, valid_utf8(experiment.description));
  wire::bytes(message, 2, valid_utf8(experiment.user));
  wire::real(message, 3, created);
  for (const HParamInfo& info : experiment.hparams) wire::always_bytes(message, 4, encode_info(info));
  for (const MetricInfo& info : experiment.metrics) wire::always_bytes(message, 5, encode_metric(info));
  wire::bytes(message, 6, valid_utf8(experiment.name));
  return plugin_data(2, message);
}

}  // namespace sweep::tbwriter
