// The HParams and the Custom Scalars tab: what a SummaryWriter adds for them is metadata of tags that they
// reserve. HParamsPluginData has one member of a oneof; its version 0 is the default and not written.
#include <cmath>
#include <set>
#include <variant>

#include "tbwriter/summary_writer_state.h"

namespace sweep::tbwriter {
namespace {

std::string encode_chart(const Chart& chart) {
  Message message, lines;
  message.text(1, chart.title);
  if (!chart.has_bands) {
    lines.repeated(1, chart.tags, valid_utf8);
    return message.message(2, lines.take()).take();
  }
  require(chart.tags.size() % 3 == 0, "a chart with bands has ", chart.tags.size(),
          " tags, but needs 3 for every line");
  for (std::size_t i = 0; i < chart.tags.size(); i += 3) {
    Message line;
    for (std::uint32_t part = 0; part < 3; ++part) line.text(part + 1, chart.tags[i + part]);
    lines.message(1, line.take());
  }
  return message.message(3, lines.take()).take();
}

std::string encode_category(const ChartCategory& category) {
  return Message()
      .text(1, category.title)
      .repeated(2, category.charts, encode_chart)
      .integer(3, category.closed ? 1 : 0)
      .take();
}

// google.protobuf.Value; "" of nullptr and of a number that is not finite. TensorBoard would drop such a
// number from the row but make the column's range NaN, and a null_value makes it fail where the column is
// sorted or filtered.
std::string encode_value(const HParamValue& value) {
  Message message;
  if (const auto* flag = std::get_if<bool>(&value)) message.always(4, std::int64_t{*flag});
  if (const auto* text = std::get_if<std::string>(&value)) message.message(3, valid_utf8(*text));
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    message.always(2, static_cast<double>(*integer));
  const auto* number = std::get_if<double>(&value);
  if (number != nullptr && std::isfinite(*number)) message.always(2, *number);
  return message.take();
}

std::string encode_info(const HParamInfo& info) {
  Message message, domain;
  message.text(1, info.name).text(2, info.display_name).text(3, info.description);
  message.integer(4, static_cast<int>(info.type));
  if (!info.discrete.empty()) {
    for (const HParamValue& value : info.discrete) {
      const std::string choice = encode_value(value);
      if (!choice.empty()) domain.message(1, choice);
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
    require(!name.empty(), "a hyperparameter has no name");
    require(names.insert(name).second, "the hyperparameter ", name, " is given twice");
    const std::string cell = encode_value(value);
    if (!cell.empty()) start.message(1, Message().message(1, valid_utf8(name)).message(2, cell).take());
  }
  start.real(5, state_->time_of(start_time));
  state_->add_plugin_record("_hparams_/session_start_info", "hparams",
                            Message().message(3, start.take()).take(), "", [this] {
                              require(state_->session == State::Session::kNone,
                                      "this run's hparams session has been started before");
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
                              require(state_->session != State::Session::kEnded,
                                      "this run's hparams session has been ended before");
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
