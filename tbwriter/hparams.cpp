// The HParams and the Custom Scalars tab: what a SummaryWriter adds for them is metadata of tags that they
// reserve. HParamsPluginData has one member of a oneof; its version 0 is the default and not written.
#include <cmath>
#include <set>
#include <variant>

#include "tbwriter/summary_writer_state.h"

namespace sweep::tbwriter {
namespace {

std::string encode_chart(const Chart& chart) {
  Message message, content;
  message.text(1, chart.title);
  if (const auto* lines = std::get_if<MultilineChart>(&chart.content)) {
    content.repeated(1, lines->tags, [](const std::string& tag) { return valid_utf8(tag); });
    return message.message(2, content.take()).take();
  }
  content.repeated(1, std::get<MarginChart>(chart.content).series, [](const MarginSeries& series) {
    return Message().text(1, series.value).text(2, series.lower).text(3, series.upper).take();
  });
  return message.message(3, content.take()).take();
}

std::string encode_category(const ChartCategory& category) {
  return Message()
      .text(1, category.title)
      .repeated(2, category.charts, encode_chart)
      .integer(3, category.closed ? 1 : 0)
      .take();
}

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

void SummaryWriter::add_hparams_start(const HParams& hparams, std::optional<double> start_time) {
  Message start;
  std::set<std::string_view> names;
  for (const auto& [name, value] : hparams) {
    if (name.empty()) throw UsageError("a hyperparameter has no name");
    if (!names.insert(name).second) throw UsageError("the hyperparameter " + name + " is given twice");
    if (!is_shown(value)) continue;
    start.message(1, Message().message(1, valid_utf8(name)).message(2, encode_value(value)).take());
  }
  start.real(5, state_->time_of(start_time));
  state_->add_plugin_record("_hparams_/session_start_info", "hparams",
                            Message().message(3, start.take()).take(), "", [this] {
                              if (state_->session != State::Session::kNone)
                                throw UsageError("this run's hparams session has been started before");
                              State::check_metric_step(state_->largest_step);
                              state_->limits_steps = true;
                              state_->session = State::Session::kStarted;
                            });
  for (const auto& [name, value] : hparams) {
    if (const auto* number = std::get_if<double>(&value); number != nullptr && !std::isfinite(*number)) {
      state_->warn("the hyperparameter " + name + " is " + std::to_string(*number) +
                   ", which TensorBoard's table cannot show; it is left out");
    }
  }
}

void SummaryWriter::add_hparams_end(SessionStatus status, std::optional<double> end_time) {
  Message end;
  end.integer(1, static_cast<int>(status)).real(2, state_->time_of(end_time));
  state_->add_plugin_record("_hparams_/session_end_info", "hparams", Message().message(4, end.take()).take(),
                            "", [this] {
                              if (state_->session == State::Session::kEnded)
                                throw UsageError("this run's hparams session has been ended before");
                              state_->session = State::Session::kEnded;
                            });
}

void SummaryWriter::add_hparams_experiment(const HParamsExperiment& experiment) {
  Message message;
  message.text(1, experiment.description)
      .text(2, experiment.user)
      .real(3, state_->now())
      .repeated(4, experiment.hparams, encode_info)
      .repeated(5, experiment.metrics, encode_metric)
      .text(6, experiment.name);
  state_->add_plugin_record("_hparams_/experiment", "hparams", Message().message(2, message.take()).take(),
                            "");
}

void SummaryWriter::add_custom_scalars_layout(const CustomScalarsLayout& layout) {
  const std::string encoded = Message().repeated(2, layout, encode_category).take();
  state_->add_plugin_record("custom_scalars__config__", "custom_scalars", "", encode_strings({encoded}, {}));
}

}  // namespace sweep::tbwriter
