// `sweep evaluate`: measures the network of a run on a part of its data.
#include <fmt/format.h>

#include <utility>

#include "core/base/printable.h"
#include "runmanager/inference/predictor.h"
#include "runmanager/text/json_output.h"
#include "tools/commands/trained_options.h"
#include "tools/output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// A wider matrix does not fit into most terminals.
constexpr std::size_t kMaxClassesOfMatrix = 20, kMaxMistakes = 20;

std::string percent(double part) { return fmt::format("{:.2f}%", 100 * part); }
std::string plain(double value) { return fmt::format("{}", value); }

TextTable class_table(const RunScores& scores, bool is_plain) {
  TextTable table({"class", "samples", "predicted", "precision", "recall", "F1"});
  const auto share_text = is_plain ? plain : percent, number_text = is_plain ? plain : short_number;
  const auto row = [&](const std::string& name, const ClassScores& score) {
    return std::vector<std::string>{name,
                                    std::to_string(score.samples),
                                    std::to_string(score.predicted),
                                    share_text(score.precision),
                                    share_text(score.recall),
                                    number_text(score.f1)};
  };
  table.columns[1].importance = table.columns[2].importance = 10;
  for (std::size_t c = 0; c < scores.classes.size(); ++c)
    table.rows.push_back(row(scores.names[c], scores.classes[c]));
  table.rows.push_back(row("mean", mean_scores(scores.classes)));
  return table;
}

TextTable matrix_table(const RunScores& scores) {
  const std::size_t classes = scores.names.size();
  TextTable table({"label \\ predicted"});
  for (const std::string& name : scores.names) table.add_column(name);
  for (std::size_t label = 0; label < classes; ++label) {
    std::vector<std::string> row = {scores.names[label]};
    for (std::size_t c = 0; c < classes; ++c)
      row.push_back(std::to_string(scores.confusion[label * classes + c]));
    table.rows.push_back(std::move(row));
  }
  return table;
}

TextTable mistakes_table(const RunScores& scores) {
  TextTable table({"label", "taken for", "samples"}, 2);
  for (const Confusion& mistake :
       most_frequent_mistakes(scores.confusion, scores.names.size(), kMaxMistakes)) {
    table.rows.push_back(
        {scores.names[mistake.label], scores.names[mistake.predicted], std::to_string(mistake.count)});
  }
  return table;
}

TextTable target_table(const RunScores& scores, bool is_plain) {
  TextTable table({"target", "MAE", "RMSE", "R2"});
  const auto number_text = is_plain ? plain : short_number;
  for (std::size_t t = 0; t < scores.targets.size(); ++t) {
    const TargetScores& target = scores.targets[t];
    table.rows.push_back({scores.names[t], number_text(target.mae), number_text(target.rmse),
                          target.r2 ? number_text(*target.r2) : ""});
  }
  return table;
}

// A table of the classes or targets; of classes also the confusion matrix, or of many classes their most
// frequent mistakes if there are any, and also if the matrix is wider than the terminal. In CSV numbers are
// plain.
std::vector<TextTable> evaluation_tables(const RunScores& scores, const TableStyle& style) {
  const bool is_plain = style.format == TableFormat::kCsv;
  if (!scores.targets.empty()) return {target_table(scores, is_plain)};
  std::vector<TextTable> tables = {class_table(scores, is_plain)};
  const bool is_small = scores.names.size() <= kMaxClassesOfMatrix;
  TextTable second = is_small ? matrix_table(scores) : mistakes_table(scores);
  // Columns are in the order of the rows, whose names are whole.
  const int width = style.format == TableFormat::kText ? style.width : 0;
  if (is_small && !second.fit_titles(width, style.unicode)) second = mistakes_table(scores);
  if (!second.rows.empty()) tables.push_back(std::move(second));
  return tables;
}

// Loss and measures, and those tables.
std::string evaluation_text(const LoadedRun& run, const RunScores& scores) {
  std::string text =
      printable(fmt::format("{}\n{} set, {} samples", run_text(run), scores.part, scores.samples));
  const char* separator = ": ";
  for (const auto& [metric, value] : scores.metrics) {
    if (!is_quality(*metric)) continue;
    text +=
        fmt::format("{}{} {}", std::exchange(separator, ", "), metric->title, metric_text(*metric, value));
  }
  const TableStyle style = style_of(TableFormat::kText);
  const std::vector<TextTable> tables = evaluation_tables(scores, style);
  text += "\n\n" + formatted_tables(tables, style);
  return text + (scores.targets.empty() && tables.size() == 1 ? "\nno mistakes\n" : "");
}

// All of it; the confusion matrix whole.
Json evaluation_json(const LoadedRun& run, const RunScores& scores) {
  Json json = {{"run", run.record.name},
               {"weights", run.weights_file.filename().string()},
               {"epoch", run.epoch},
               {"part", scores.part},
               {"samples", scores.samples}};
  for (const auto& [metric, value] : scores.metrics) {
    if (is_quality(*metric)) json[std::string(metric->key)] = json_number(value);
  }
  if (!scores.targets.empty()) {
    for (std::size_t t = 0; t < scores.targets.size(); ++t) {
      const TargetScores& target = scores.targets[t];
      json["targets"].push_back({{"name", scores.names[t]},
                                 {"mae", json_number(target.mae)},
                                 {"rmse", json_number(target.rmse)},
                                 {"r2", json_number(target.r2)}});
    }
    return json;
  }
  const auto values = [](const ClassScores& score) {
    return Json{{"samples", score.samples},
                {"predicted", score.predicted},
                {"precision", score.precision},
                {"recall", score.recall},
                {"f1", score.f1}};
  };
  const std::size_t classes = scores.names.size();
  for (std::size_t c = 0; c < classes; ++c) {
    Json entry = {{"name", scores.names[c]}};
    entry.update(values(scores.classes[c]));
    json["classes"].push_back(std::move(entry));
  }
  json["mean"] = values(mean_scores(scores.classes));
  for (std::size_t label = 0; label < classes; ++label) {
    const auto first = scores.confusion.begin() + static_cast<std::ptrdiff_t>(label * classes);
    json["confusion"].push_back(
        std::vector<std::int64_t>(first, first + static_cast<std::ptrdiff_t>(classes)));
  }
  return json;
}

struct EvaluateOptions {
  TrainedOptions trained;
  std::string part, device;
  TableFormat format = TableFormat::kText;
};

int evaluate(const EvaluateOptions& options) {
  const LoadedRun run = load_run(options.trained);
  const Dataset data = load_data_with_warning(run);
  std::string part = options.part;
  const Subset samples = part_of(data, part);
  Predictor predictor(run, options.device);
  const RunScores scores = score_samples(run, predictor, samples, part);
  print_as(
      options.format, [&] { return evaluation_json(run, scores); },
      [&] { return evaluation_text(run, scores); },
      [&] { return evaluation_tables(scores, style_of(options.format)); });
  return kExitDone;
}

}  // namespace

Command evaluate_command() {
  return {.name = "evaluate",
          .description = "loss, confusion matrix, precision, recall and F1 of a run, or errors of numbers",
          .missing_argument = "the directory of a run is needed: sweep evaluate runs/NAME/RUN",
          .add_to = command_with<EvaluateOptions>(evaluate, [](CLI::App& app, EvaluateOptions& options) {
            add_trained_options(app, options.trained);
            add_data_option(app, options.trained);
            app.add_option("--part", options.part,
                           "of the run's data; default: test if there is one, else validation, else train")
                ->check(one_of({"train", "validation", "test"}));
            add_device_option(app, options.device);
            add_format_option(app, options.format);
            app.footer("Exit codes: 0 evaluated, 2 no such run, or its data cannot be read.");
          })};
}

}  // namespace sweep
