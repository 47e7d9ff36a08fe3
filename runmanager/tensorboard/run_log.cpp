#include "runmanager/tensorboard/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>

#include "core/base/error.h"
#include "core/network/layers.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/tensorboard/captioned_grid.h"
#include "runmanager/tensorboard/network_graph.h"
#include "runmanager/tensorboard/predictions.h"
#include "runmanager/text/table_text.h"
#include "tbwriter/canvas.h"

namespace sweep {
namespace {

// close() writes the end of the session, with the run's status.
tbwriter::WriterOptions without_session_end(tbwriter::WriterOptions options) {
  options.end_session_on_close = false;
  return options;
}

tbwriter::SessionStatus session_status(RunStatus status) {
  switch (status) {
    case RunStatus::kCompleted:
    case RunStatus::kPruned:  // Its numbers are good; there are fewer of them.
      return tbwriter::SessionStatus::kSuccess;
    case RunStatus::kFailed:
      return tbwriter::SessionStatus::kFailure;
    default:
      return tbwriter::SessionStatus::kUnknown;
  }
}

std::string not_swept_text(const Params& not_swept) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, value] : not_swept) rows.push_back({key, param_text(value)});
  return "These keys do not count in this run, because their conditions are not met. The table of "
         "hyperparameters has "
         "the values that hold instead, so that parallel coordinates show the run.\n\n" +
         markdown_table({"key", "value"}, rows);
}

// For what a program's own loop names: the writer's complaints are of its arguments.
template <class Add>
void add_own(Add add) {
  try {
    add();
  } catch (const tbwriter::UsageError& error) {
    throw ConfigError(error.what());
  }
}

// "Shirt" or "3" of a class, "0.25, 12" of numbers.
std::string target_text(const Batch& batch, std::size_t row, std::size_t rows,
                        std::span<const std::string> class_names) {
  if (!is_regression(batch.targets)) {
    const auto label = static_cast<std::size_t>(batch.labels()[row]);
    return label < class_names.size() ? class_names[label] : std::to_string(label);
  }
  const std::size_t width = batch.numbers().size() / rows;
  std::string text;
  for (const float number : batch.numbers().subspan(row * width, width))
    text += fmt::format("{}{:.4g}", text.empty() ? "" : ", ", number);
  return text;
}

// The points of the metrics on the test set.
std::vector<tbwriter::ScalarPoint> test_points(const std::map<std::string, double>& metrics) {
  std::vector<tbwriter::ScalarPoint> points;
  for (const auto& [name, value] : metrics) {
    const Metric* const metric = find_metric(name);
    if (metric != nullptr && metric->part == MetricPart::kTest) points.push_back({metric->tag, value});
  }
  return points;
}

std::vector<std::string> class_cells(const nlohmann::ordered_json& count, double samples) {
  return {fmt::format("{}", count.get<std::size_t>()),
          fmt::format("{:.3g} %", 100 * count.get<double>() / samples)};
}

std::vector<std::string> target_cells(const nlohmann::ordered_json& target, double) {
  return {fmt::format("{:.6g}", target.at("mean").get<double>()),
          fmt::format("{:.6g}", target.at("deviation").get<double>())};
}

// "60 000", so that orders of magnitude are seen. U+202F keeps the groups together.
std::string grouped(double count) {
  std::string digits = fmt::format("{:.0f}", count), text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += "\u202F";
    text += digits[i];
  }
  return text;
}

// "6 x 24 x 24": brackets would look like a link.
std::string shape_text(const Shape& shape) {
  std::string text;
  for (const std::int64_t extent : shape) text += (text.empty() ? "" : " × ") + std::to_string(extent);
  return text;
}

// "out_channels 6, kernel_size [5, 5]", in PyTorch's order. Defaults are left out.
std::string arguments_text(const Layer& layer) {
  std::string text;
  const NamedType* type = find_type(layer_types(), layer.type);
  if (type == nullptr) return text;
  for (const ArgumentType& argument : type->arguments) {
    const auto value = layer.arguments.find(argument.name);
    if (value == layer.arguments.end() || value->second == argument.default_value) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", argument.name, to_string(value->second));
  }
  return text;
}

}  // namespace

std::vector<tbwriter::ScalarPoint> epoch_points(const EpochRecord& epoch) {
  std::vector<tbwriter::ScalarPoint> points;
  for (const auto& [metric, value] : epoch.values) {
    if (!metric->tag.empty()) points.push_back({metric->tag, value});
  }
  return points;
}

tbwriter::HParams to_hparams(const Params& params, const Params& not_swept) {
  tbwriter::HParams hparams;
  for (const Params* part : {&params, &not_swept}) {
    for (const auto& [name, value] : *part)
      std::visit([&, &name = name](const auto& of_type) { hparams.emplace_back(name, of_type); }, value);
  }
  return hparams;
}

std::span<const double> parameter_limits() {
  static const std::vector<double> limits = [] {
    std::vector<double> all = tbwriter::histogram_limits(0);
    all.pop_back();  // The last bucket has no upper limit.
    return all;
  }();
  return limits;
}

std::optional<tbwriter::EncodedImage> first_batch_grid(const DataLoader& loader, const Run& run) {
  const Shape& shape = loader.samples().set->shape;
  if (!is_picture(shape)) return std::nullopt;
  LoaderOptions options = loader.options();
  options.batch_size =
      std::min(options.batch_size, shown_pictures(shape, static_cast<std::size_t>(run.log.images)));
  options.num_workers = 0;
  if (options.batch_size == 0) return std::nullopt;
  DataLoader first(loader.samples(), options);
  first.begin_epoch(0);
  const Batch* const batch = first.next();
  if (batch == nullptr) return std::nullopt;
  const tbwriter::BatchSize size = {.count = static_cast<std::int64_t>(batch->size()),
                                    .channels = shape[0],
                                    .height = shape[1],
                                    .width = shape[2]};
  const auto encode = [&]<typename T>(std::span<const T> samples) {
    const std::size_t values = element_count(shape);
    std::vector<T> shown;
    std::vector<std::string> captions;
    for (const std::uint32_t row : batch->indices) {
      const auto sample = samples.subspan(row * values, values);
      shown.insert(shown.end(), sample.begin(), sample.end());
      captions.push_back(target_text(*batch, row, samples.size() / values, run.class_names));
    }
    if (!run.log.image_labels)
      return tbwriter::encode_image_grid(std::span<const T>(shown), size, {.columns = 8, .padding = 2});
    std::vector<std::uint8_t> pixels;
    for (const T value : shown) pixels.push_back(tbwriter::to_byte(value));
    return draw_captioned_grid(pixels, size, captions, 8);
  };
  return std::visit(encode, batch->samples);
}

std::string data_table(const nlohmann::ordered_json& balance) {
  if (!balance.is_array() || balance.empty()) return "";
  const bool has_classes = balance.front().contains("classes");
  const char* key = has_classes ? "classes" : "targets";
  const auto cells = has_classes ? class_cells : target_cells;
  std::vector<std::string> header = {has_classes ? "class" : "target"};
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, first] : balance.front().at(key).items()) rows.push_back({name});
  if (has_classes) rows.push_back({"all"});
  for (const nlohmann::ordered_json& part : balance) {
    const auto name = part.at("part").get<std::string>();
    const auto samples = part.at("samples").get<double>();
    header.push_back(has_classes ? name : name + ": mean");
    header.push_back(has_classes ? "" : "deviation");
    std::size_t row = 0;
    for (const auto& [ignored, value] : part.at(key).items()) {
      for (std::string& cell : cells(value, samples)) rows.at(row).push_back(std::move(cell));
      ++row;
    }
    if (has_classes) rows.back().insert(rows.back().end(), {fmt::format("{:.0f}", samples), ""});
  }
  return markdown_table(header, rows);
}

std::string network_table(const Network& network) {
  std::vector<std::vector<std::string>> rows = {{"input", "", "", shape_text(network.input()), "", ""}};
  for (const Layer& layer : network.layers()) {
    std::size_t parameters = 0;
    for (const std::size_t index : layer.parameters) parameters += network.parameters()[index].count;
    const double flops = network.forward_flops(layer);
    rows.push_back({layer.name, layer.type, arguments_text(layer), shape_text(layer.output),
                    parameters == 0 ? "" : grouped(static_cast<double>(parameters)),
                    flops == 0 ? "" : grouped(flops)});
  }
  rows.push_back({"all", "", "", "", grouped(static_cast<double>(network.parameter_count())),
                  grouped(network.forward_flops())});
  return markdown_table({"layer", "type", "arguments", "output", "parameters", "FLOPs"}, rows);
}

RunLog::RunLog(const std::filesystem::path& directory, Run run, tbwriter::WriterOptions options)
    : run_(std::move(run)), writer_(directory, without_session_end(std::move(options))) {}

void RunLog::begin(const nlohmann::ordered_json& provenance) {
  if (has_session()) add_own([&] { writer_.add_hparams_start(to_hparams(run_.params, run_.not_swept)); });
  if (!run_.log.text) return;
  nlohmann::ordered_json configuration = {{"run", run_.name}, {"device", run_.device}};
  if (run_.config.contains("command"))
    configuration.erase("device");  // Where a program computes is not known.
  if (run_.config.is_object()) {
    for (const auto& [key, value] : run_.config.items()) configuration[key] = value;
    // network() has them as a table.
    if (auto network = configuration.find("network"); network != configuration.end() && network->is_object())
      network->erase("layers");
  }
  for (const auto& [key, value] : run_.params) {
    if (!run_.config.is_object()) configuration[key] = to_json(value);
  }
  writer_.add_text("configuration", markdown_table(configuration));
  if (!run_.not_swept.empty()) writer_.add_text("not swept", not_swept_text(run_.not_swept));
  nlohmann::ordered_json shown = provenance;
  if (shown.contains("dataset") && shown["dataset"].contains("balance")) {
    writer_.add_text("data", data_table(shown["dataset"]["balance"]));
    shown["dataset"].erase("balance");
  }
  if (!shown.empty()) writer_.add_text("provenance", markdown_table(shown));
}

tbwriter::CustomScalarsLayout scalars_layout(bool numbers, bool has_validation) {
  const auto chart = [](const char* title, const std::string& key) {
    return tbwriter::Chart{title, {fmt::format("{}$", metric_named(key).tag)}};
  };
  // Lines of one run have one colour, so training and validation are charts side by side.
  const auto category = [&](const char* title, const std::string& key) {
    tbwriter::ChartCategory pair = {.title = title, .charts = {chart("Training", key)}};
    if (has_validation) pair.charts.push_back(chart("Validation", "validation_" + key));
    return pair;
  };
  tbwriter::CustomScalarsLayout layout = {category("Loss", "loss")};
  if (!numbers) layout.push_back(category("Accuracy", "accuracy"));
  if (numbers) {
    layout.push_back(category("Mean absolute error", "mae"));
    layout.push_back(category("Root mean square error", "rmse"));
    layout.push_back(category("R²: 1 is perfect, 0 no better than the mean", "r2"));
  }
  layout.push_back({.title = "Speed",
                    .charts = {chart("Seconds per epoch", "epoch_seconds"),
                               chart("Images per second", "images_per_second")}});
  return layout;
}

void RunLog::layout(bool numbers, bool has_validation) {
  if (run_.log.layout) writer_.add_custom_scalars_layout(scalars_layout(numbers, has_validation));
}

void RunLog::network(const Network& network) {
  if (run_.log.text) writer_.add_text("network", network_table(network));
  if (run_.log.graph)
    writer_.add_graph(network_graph(network, known_device(run_.device).value_or(Device()), run_.loss));
}

void RunLog::profile(const Network& network, std::span<const LayerProfile> layers, std::int64_t samples,
                     std::int64_t step) {
  if (!run_.log.graph || layers.empty()) return;
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t now = std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count();
  writer_.add_graph_profile(
      fmt::format("step of {} samples{}", samples,
                  shares_times(layers) ? ", fused layers share their time by FLOPs" : ""),
      network_profile(network, known_device(run_.device).value_or(Device()), layers, samples, now), step);
}

void RunLog::images(const DataLoader& loader) {
  if (const auto grid = first_batch_grid(loader, run_)) writer_.add_image("images", *grid);
}

void RunLog::epoch(const EpochRecord& record, std::optional<double> learning_rate, std::int64_t step) {
  std::vector<tbwriter::ScalarPoint> points = epoch_points(record);
  if (learning_rate) points.push_back({"Optimizer/lr", *learning_rate});
  std::deque<std::string> tags;  // A point refers to its tag.
  const bool changes = is_member(run_.config);
  const Lineage lineage = lineage_of(run_.config);
  for (const auto& [key, value] : changes ? params_at(lineage, run_.params, record.epoch) : Params()) {
    if (const nlohmann::ordered_json number = to_json(value); number.is_number())
      points.push_back({tags.emplace_back("Parameters/" + key), number.get<double>()});
  }
  add_own([&] { writer_.add_scalar_batch(points, step); });
}

void RunLog::histogram(std::string_view tag, const tbwriter::Histogram& histogram, std::int64_t step) {
  add_own([&] { writer_.add_histogram_counts(tag, histogram, step); });
}

void RunLog::histograms(std::span<const std::pair<std::string, tbwriter::Histogram>> named,
                        std::int64_t step) {
  if (!run_.log.histograms) return;
  for (const auto& [tag, counted] : named) histogram(tag, counted, step);
}

void RunLog::image(std::string_view tag, std::span<const std::uint8_t> pixels, const Shape& shape,
                   std::int64_t step) {
  if (shape.size() != 3 || (shape[0] != 1 && shape[0] != 3)) {
    throw ShapeError(
        fmt::format("track_image: got the shape {}, want [channels, height, width] with 1 or 3 channels",
                    to_string(shape)));
  }
  add_own([&] {
    writer_.add_image(tag, pixels, {shape[1], shape[2], shape[0], tbwriter::PixelOrder::kChw}, step);
  });
}

void RunLog::batch(const Totals& totals, std::int64_t batch, std::string_view name) {
  if (totals.samples == 0) return;
  const auto samples = static_cast<double>(totals.samples);
  const std::string loss = fmt::format("Loss/{}", name), accuracy = fmt::format("Accuracy/{}", name);
  std::vector<tbwriter::ScalarPoint> points = {{loss, totals.loss / samples}};
  if (totals.numbers == 0) points.push_back({accuracy, static_cast<double>(totals.correct) / samples});
  add_own([&] { writer_.add_scalar_batch(points, batch); });
}

void RunLog::predictions(const Subset& samples, std::span<const float> outputs,
                         std::span<const std::string> class_names, std::string_view part, std::int64_t step,
                         bool by_sigmoid) {
  if (!run_.log.predictions) return;
  add_own([&] { log_predictions(writer_, samples, outputs, class_names, part, step, by_sigmoid); });
}

void RunLog::results(const RunRecord& record, std::int64_t step) {
  const std::vector<tbwriter::ScalarPoint> points = test_points(record.metrics);
  if (!points.empty()) writer_.add_scalar_batch(points, step);
  if (!run_.log.text) return;
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, value] : record.metrics)
    rows.push_back({name, fmt::format("{:.6g}", shown(value))});
  if (record.setup_seconds) rows.push_back({"setup_seconds", fmt::format("{:.6g}", *record.setup_seconds)});
  if (record.best_epoch) rows.push_back({"best_epoch", std::to_string(*record.best_epoch)});
  if (!record.stop_reason.empty()) rows.push_back({"stopped early", record.stop_reason});
  if (!rows.empty()) writer_.add_text(kMetricsTag, markdown_table({"metric", "value"}, rows));
}

void RunLog::flush() { writer_.flush(); }

tbwriter::FilePosition RunLog::position() const { return writer_.position(); }

void RunLog::close(RunStatus status, std::string_view reason) {
  if (!reason.empty()) {
    writer_.add_text(kStatusTag, fmt::format("**{}**: {}", to_string(status), markdown_text(reason)));
  }
  // TensorBoard uses the first end of a session that it finds, so an interrupted run must not have one.
  if (has_session() && status != RunStatus::kInterrupted) writer_.add_hparams_end(session_status(status));
  writer_.close();
}

}  // namespace sweep
