#include "tbwriter/hparams.h"

#include <cmath>
#include <set>
#include <string_view>

#include "tbwriter/encoding.h"
#include "tbwriter/error.h"
#include "tbwriter/message.h"

namespace sweep::tbwriter {
namespace {

// TensorBoard would drop a number that is not finite from the row but make the column's range NaN. A
// null_value makes it fail where the column is sorted or filtered.
bool is_shown(const HParamValue& value) {
  const auto* number = std::get_if<double>(&value);
  return number != nullptr ? std::isfinite(*number) : !std::holds_alternative<std::nullptr_t>(value);
}

// google.protobuf.Value of one that is shown.
std::string encode_value(const HParamValue& value) {
  Message message;
  if (const auto* flag = std::get_if<bool>(&value)) return message.always(4, std::int64_t{*flag}).take();
  if (const auto* text = std::get_if<std::string>(&value))
    return message.message(3, valid_utf8(*text)).take();
  const auto* integer = std::get_if<std::int64_t>(&value);
  return message.always(2, integer != nullptr ? static_cast<double>(*integer) : std::get<double>(value))
      .take();
}

std::string encode_info(const HParamInfo& info) {
  Message message, domain;
  message.text(1, info.name).text(2, info.display_name).text(3, info.description);
  message.integer(4, static_cast<int>(info.type));
  if (!info.discrete.empty()) {
    for (const HParamValue& value : info.discrete) {
      if (is_shown(value)) domain.message(1, encode_value(value));
    }
    message.message(5, domain.take());
  } else if (info.interval) {
    message.message(6, domain.real(1, info.interval->first).real(2, info.interval->second).take());
  }
  return message.integer(7, info.differs ? 1 : 0).take();
}

std::string encode_metric(const MetricInfo& info) {
  return Message()
      .message(1, Message().text(1, info.group).text(2, info.tag).take())
      .text(3, info.display_name)
      .text(4, info.description)
      .take();
}

}  // namespace

// HParamsPluginData has one member of a oneof; its version 0 is the default and not written.

std::string encode_session_start(const HParams& hparams, double start_time) {
  Message session;
  std::set<std::string_view> names;
  for (const auto& [name, value] : hparams) {
    if (name.empty()) throw UsageError("a hyperparameter has no name");
    if (!names.insert(name).second) throw UsageError("the hyperparameter " + name + " is given twice");
    if (!is_shown(value)) continue;
    session.message(1, Message().message(1, valid_utf8(name)).message(2, encode_value(value)).take());
  }
  return Message().message(3, session.real(5, start_time).take()).take();
}

std::string encode_session_end(SessionStatus status, double end_time) {
  return Message().message(4, Message().integer(1, static_cast<int>(status)).real(2, end_time).take()).take();
}

std::string encode_experiment(const HParamsExperiment& experiment, double created) {
  Message message;
  message.text(1, experiment.description)
      .text(2, experiment.user)
      .real(3, created)
      .repeated(4, experiment.hparams, encode_info)
      .repeated(5, experiment.metrics, encode_metric)
      .text(6, experiment.name);
  return Message().message(2, message.take()).take();
}

}  // namespace sweep::tbwriter
