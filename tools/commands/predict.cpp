// `sweep predict`: classes or numbers for new files, or for the samples of a run's own data.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/data/unlabelled_samples.h"
#include "runmanager/inference/predictor.h"
#include "runmanager/text/json_output.h"
#include "tools/commands/trained_options.h"
#include "tools/output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kShownOfDataset = 20;  // samples in a table, if nobody says how many
constexpr std::size_t kShownSkipped = 20;    // what cannot be used, on standard error
constexpr std::size_t kSamplesAtOnce = 4096;

struct PredictOptions {
  TrainedOptions trained;
  std::vector<fs::path> files;
  bool dataset = false;
  TableFormat format = TableFormat::kText;
  std::string part, device;
  std::size_t limit = 0;  // samples of --dataset; 0: all, but kShownOfDataset in a table
};

// The predictions of some samples by a Predictor, which gives them their kind and the names of their
// columns.
struct Predictions {
  std::vector<std::string> samples;  // their names: "cat.jpg"
  std::vector<float> values;         // [samples, names]
  std::vector<std::string> labels;   // the right one of each sample; empty if not known
  std::vector<float> targets;        // likewise of numbers, [samples, names]
};

constexpr std::size_t kShownClasses = 3;

std::span<const float> row_of(const std::vector<float>& values, std::size_t sample, std::size_t columns) {
  return std::span(values).subspan(sample * columns, columns);
}

std::string value_text(PredictionKind kind, float value, bool is_csv) {
  // The digits of a float, not of the double that it becomes: 0.1, not 0.10000000149011612.
  if (is_csv) return fmt::format("{}", value);
  if (kind == PredictionKind::kScores) return fmt::format("{:.4f}", value);
  if (kind == PredictionKind::kNumbers) return fmt::format("{:.6g}", value);
  return fmt::format("{:.2f}%", 100 * value);
}

const char* value_name(PredictionKind kind) {
  return kind == PredictionKind::kScores ? "score" : "probability";
}

// The places of the largest values, the largest first.
std::vector<std::size_t> largest_places(std::span<const float> values, std::size_t count) {
  std::vector<std::size_t> places(values.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, std::ranges::greater(), [&](std::size_t i) { return values[i]; });
  places.resize(std::min(places.size(), count));
  return places;
}

// The right numbers are next to those that are predicted, in CSV before all of them.
TextTable number_table(const Predictions& predictions, const Predictor& predictor, bool is_csv) {
  const std::vector<float>&predicted = predictions.values, &right = predictions.targets;
  const std::vector<std::string>& names = predictor.names();
  std::vector<std::pair<const std::vector<float>*, std::size_t>> columns;
  for (std::size_t c = 0; is_csv && !right.empty() && c < names.size(); ++c) columns.emplace_back(&right, c);
  for (std::size_t c = 0; c < names.size(); ++c) {
    columns.emplace_back(&predicted, c);
    if (!is_csv && !right.empty()) columns.emplace_back(&right, c);
  }
  TextTable table({"sample"});
  for (const auto& [values, c] : columns) table.add_column(names[c] + (values == &right ? " (right)" : ""));
  for (std::size_t i = 0; i < predictions.samples.size(); ++i) {
    std::vector<std::string> row = {predictions.samples[i]};
    for (const auto& [values, c] : columns)
      row.push_back(value_text(predictor.kind(), (*values)[i * names.size() + c], is_csv));
    table.rows.push_back(std::move(row));
  }
  return table;
}

TextTable class_table(const Predictions& predictions, const Predictor& predictor, bool is_csv) {
  TextTable table({"sample"});
  const bool has_labels = !predictions.labels.empty();
  const std::vector<std::string>& names = predictor.names();
  if (has_labels) table.add_column("label", false);
  table.add_column("class", false);
  table.add_column(value_name(predictor.kind()));
  const std::size_t shown = std::min(names.size(), kShownClasses);
  const char* const letter = predictor.kind() == PredictionKind::kScores ? "score" : "P";
  for (std::size_t c = 0; is_csv && c < names.size(); ++c)
    table.add_column(fmt::format("{}({})", letter, names[c]));
  for (std::size_t k = 1; !is_csv && k < shown; ++k) {
    table.add_column(k == 1 ? "second" : "third");
    table.columns.back().importance = static_cast<int>(shown - k);
  }
  for (std::size_t i = 0; i < predictions.samples.size(); ++i) {
    const auto values = row_of(predictions.values, i, names.size());
    const auto text = [&](std::size_t c) { return value_text(predictor.kind(), values[c], is_csv); };
    const std::vector<std::size_t> places = largest_places(values, shown);
    std::vector<std::string> row = {predictions.samples[i]};
    if (has_labels) row.push_back(predictions.labels[i]);
    row.insert(row.end(), {names[places[0]], text(places[0])});
    for (std::size_t c = 0; is_csv && c < names.size(); ++c) row.push_back(text(c));
    for (std::size_t k = 1; !is_csv && k < shown; ++k)
      row.push_back(names[places[k]] + " " + text(places[k]));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// A row per sample: the class and its probability with the two that follow, or the numbers. In CSV numbers
// are plain, and of classes all have their probability: "P(cat)". If the right answers are known, there are
// columns for them: "label", or "NAME (right)".
TextTable predictions_table(const Predictions& predictions, const Predictor& predictor, TableFormat format) {
  const bool is_csv = format == TableFormat::kCsv;
  return predictor.kind() == PredictionKind::kNumbers ? number_table(predictions, predictor, is_csv)
                                                      : class_table(predictions, predictor, is_csv);
}

// A list of {"sample", "class", "probability", "probabilities": {…}} or {"sample", "values": {…}}, with
// "label" or "targets" if they are known.
Json predictions_json(const Predictions& predictions, const Predictor& predictor) {
  Json list = Json::array();
  const std::size_t width = predictor.names().size();
  for (std::size_t i = 0; i < predictions.samples.size(); ++i) {
    Json entry = {{"sample", predictions.samples[i]}};
    const auto values = row_of(predictions.values, i, width);
    const auto object = [&](std::span<const float> row) {
      Json named = Json::object();
      for (std::size_t c = 0; c < width; ++c)
        named[predictor.names()[c]] = json_number(static_cast<double>(row[c]));
      return named;
    };
    if (predictor.kind() == PredictionKind::kNumbers) {
      if (!predictions.targets.empty()) entry["targets"] = object(row_of(predictions.targets, i, width));
      entry["values"] = object(values);
    } else {
      if (!predictions.labels.empty()) entry["label"] = predictions.labels[i];
      const std::size_t best = largest_places(values, 1)[0];
      const bool is_score = predictor.kind() == PredictionKind::kScores;
      entry["class"] = predictor.names()[best];
      entry[value_name(predictor.kind())] = json_number(static_cast<double>(values[best]));
      entry[is_score ? "scores" : "probabilities"] = object(values);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

// Writes predictions in the form that was asked for: CSV at once, the others when all are there.
class Output {
 public:
  Output(const PredictOptions& options, const LoadedRun& run, const Predictor& predictor)
      : options_(options), run_(run), predictor_(predictor) {}

  void add(Predictions predictions) {
    const bool is_first = std::exchange(count_, count_ + predictions.samples.size()) == 0;
    if (options_.format == TableFormat::kCsv) {
      const TextTable table = predictions_table(predictions, predictor_, options_.format);
      std::cout << (is_first ? formatted_table(table, {options_.format}) : csv_rows(table));
      return;
    }
    const auto append = [](auto& to, auto& from) {
      to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
    };
    append(all_.samples, predictions.samples);
    append(all_.values, predictions.values);
    append(all_.labels, predictions.labels);
    append(all_.targets, predictions.targets);
  }

  void skip(const SkippedFile& file) {
    // A table may have a mistake in each row.
    if (skipped_.size() < kShownSkipped)
      std::cerr << printable_line(fmt::format("sweep: skipped: {}: {}", file.path.string(), file.reason))
                << '\n';
    skipped_.push_back({{"path", file.path.string()}, {"reason", file.reason}});
  }

  // Returns the exit code.
  int finish(std::size_t left_out) const {
    if (skipped_.size() > kShownSkipped)
      std::cerr << fmt::format("sweep: and {} more are skipped; --format json names all\n",
                               skipped_.size() - kShownSkipped);
    if (options_.format == TableFormat::kJson) {
      print_json({{"run", run_.record.name},
                  {"weights", run_.weights_file.filename().string()},
                  {"epoch", run_.epoch},
                  {"predictions", predictions_json(all_, predictor_)},
                  {"skipped", skipped_}});
    } else if (options_.format != TableFormat::kCsv && count_ > 0) {
      const bool is_text = options_.format == TableFormat::kText;
      if (is_text) std::cout << printable(run_text(run_)) << "\n\n";
      std::cout << formatted_table(predictions_table(all_, predictor_, options_.format),
                                   style_of(options_.format));
      if (is_text && left_out > 0)
        std::cout << fmt::format("and {} more: --limit N shows N of them, --csv and --json all\n", left_out);
    }
    if (skipped_.empty()) return kExitDone;
    return count_ == 0 ? kExitBadInput : kExitFailed;
  }

 private:
  const PredictOptions& options_;
  const LoadedRun& run_;
  const Predictor& predictor_;
  Predictions all_;
  Json skipped_ = Json::array();
  std::size_t count_ = 0;
};

void predict_files(const PredictOptions& options, const LoadedRun& run, Predictor& predictor,
                   Output& output) {
  read_unlabelled(
      options.files, run.samples, /*threads=*/0,
      [&](SampleArray samples, std::vector<std::string> names) {
        const std::size_t count = names.size();
        const auto set = unlabelled_set(run.samples.shape, std::move(samples));
        Predictions predictions;
        predictions.samples = std::move(names);
        predictions.values = predictor.predict({set, 0, count});
        output.add(std::move(predictions));
      },
      [&](const SkippedFile& file) { output.skip(file); });
}

// Returns how many samples were left out.
std::size_t predict_dataset(const PredictOptions& options, const LoadedRun& run, Predictor& predictor,
                            Output& output) {
  const Dataset data = load_data_with_warning(run);
  std::string part = options.part;
  Subset samples = part_of(data, part);
  const std::size_t all = samples.count;
  const bool is_table = options.format == TableFormat::kText;
  const std::size_t limit = options.limit > 0 ? options.limit : is_table ? kShownOfDataset : all;
  const std::size_t end = std::min(all, limit);
  for (std::size_t done = 0; done < end;) {
    const Subset piece = samples.part(done, std::min(end - done, kSamplesAtOnce));
    Predictions predictions;
    predictions.values = predictor.predict(piece);
    for (std::size_t i = 0; i < piece.count; ++i)
      predictions.samples.push_back(fmt::format("{}[{}]", part, done + i));
    if (predictor.kind() == PredictionKind::kNumbers) {
      predictions.targets = piece.numbers();
    } else {
      for (const std::int32_t label : piece.labels())
        predictions.labels.push_back(predictor.names()[static_cast<std::size_t>(label)]);
    }
    done += piece.count;
    output.add(std::move(predictions));
  }
  return is_table && options.limit == 0 ? all - end : 0;
}

int predict(const PredictOptions& options) {
  if (options.files.empty() != options.dataset) {
    throw ConfigError(
        options.dataset
            ? "predict: either files or --dataset, not both"
            : "predict: files are needed, sweep predict RUN cat.jpg, or --dataset for the run's own data");
  }
  const LoadedRun run = load_run(options.trained);
  Predictor predictor(run, options.device);
  Output output(options, run, predictor);
  if (options.dataset) return output.finish(predict_dataset(options, run, predictor, output));
  predict_files(options, run, predictor, output);
  return output.finish(0);
}

}  // namespace

Command predict_command() {
  return {
      .name = "predict",
      .description = "classes or numbers by the network of a run, for new files or its own data",
      .missing_argument = "the directory of a run is needed: sweep predict runs/NAME/RUN FILE…",
      .add_to = command_with<PredictOptions>(predict, [](CLI::App& app, PredictOptions& options) {
        add_trained_options(app, options.trained);
        add_value(app, "files FILE", options.files,
                  "pictures, tables (CSV, TSV) or arrays (.npy, .npz, safetensors, IDX) without targets; or "
                  "folders of such files");
        auto* dataset =
            app.add_flag("--dataset", options.dataset, "instead of files: samples of the run's own data");
        add_data_option(app, options.trained)->needs(dataset);
        app.add_option("--part", options.part,
                       "of that data; default: test if there is one, else validation, else train")
            ->check(one_of({"train", "validation", "test"}))
            ->needs(dataset);
        add_count(app, "--limit", options.limit,
                  "the first samples of that part only; default: all, or 20 in a table", 1, 1'000'000'000)
            ->needs(dataset);
        add_device_option(app, options.device);
        add_format_option(app, options.format);
        add_format_flag(app, "csv", options.format);
        app.footer(
            "CSV and JSON have every class.\n"
            "Exit codes: 0 everything predicted, 1 all but the files that are named on standard error, 2 no "
            "such run,\nor none of the files can be used.");
      })};
}

}  // namespace sweep
