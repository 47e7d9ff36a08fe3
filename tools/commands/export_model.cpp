// `sweep export-model`: writes the network of a run for other programs.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "runmanager/export/model_files.h"
#include "runmanager/inference/predictor.h"
#include "tools/commands/trained_options.h"
#include "tools/output.h"

namespace sweep {
namespace {

struct ExportModelOptions {
  TrainedOptions trained;
  std::filesystem::path output;
};

std::string extents(const Shape& shape) { return fmt::format("[batch, {}]", fmt::join(shape, ", ")); }

std::string meaning_of_output(const LoadedRun& run) {
  const std::vector<std::string>& classes = run.samples.class_names;
  const std::string names =
      fmt::format("{}", fmt::join(classes.empty() ? run.samples.target_names : classes, ", "));
  if (run.network->output()[0] == 1 && classes.size() == 2)
    return fmt::format("its sigmoid is the probability of {}, else it is {}", classes[1], classes[0]);
  switch (prediction_kind(run)) {
    case PredictionKind::kProbabilities:
      return "before softmax, of " + names;
    case PredictionKind::kSigmoids:
      return "before the sigmoid of each, of " + names;
    case PredictionKind::kScores:
      return "scores of " + names;
    case PredictionKind::kNumbers:
      break;
  }
  const bool is_bce = run.config.loss.kind == LossOptions::Kind::kBceWithLogits;
  return (is_bce ? "before the sigmoid, " : "") + names;
}

// What users of the file have to know.
std::string usage(const LoadedRun& run) {
  const SampleFormat& samples = run.samples;
  std::string input = samples.bytes ? "values 0 to 255 as pictures have them, which the model divides by 255"
                                    : "values as the data have them";
  if (!samples.transform.mean.empty())
    input += samples.bytes ? " and normalises" : ", which the model normalises";
  if (!samples.fill_values.empty()) input += "; NaN is a missing value, which the model fills in";
  if (samples.bytes && samples.shape.size() == 3 && samples.shape[0] == 3)
    input += "; channels in the data's order, which is red, green, blue of pictures";
  if (!samples.columns.empty()) {
    std::vector<std::string> names;
    for (const FeatureColumn& column : samples.columns)
      std::ranges::move(column.feature_names(), std::back_inserter(names));
    input += fmt::format(": {}", fmt::join(names, ", "));
  }
  return fmt::format("input   float32 {}: {}\noutput  float32 {}: {}\n", extents(samples.shape), input,
                     extents(run.network->output()), meaning_of_output(run));
}

int export_model(const ExportModelOptions& options) {
  const std::string ending = options.output.extension().string();
  if (ending != ".onnx" && ending != ".safetensors") {
    throw ConfigError(fmt::format("-o {}: the ending names no format, want .onnx or .safetensors",
                                  options.output.string()));
  }
  const LoadedRun run = load_run(options.trained);
  if (ending == ".onnx") {
    write_onnx(options.output, run);
  } else {
    write_state_dict(options.output, run);
  }
  std::string text = fmt::format("{}: {} parameters, {}\n", options.output.string(),
                                 run.network->parameter_count(), run_text(run));
  if (ending == ".onnx") text += usage(run);
  std::cout << printable(text);
  return kExitDone;
}

}  // namespace

Command export_model_command() {
  return {
      .name = "export-model",
      .description = "write the network of a run as ONNX, or its weights as safetensors for PyTorch",
      .missing_argument =
          "the directory of a run and a file are needed: sweep export-model runs/NAME/RUN -o model.onnx",
      .add_to = command_with<ExportModelOptions>(export_model, [](CLI::App& app,
                                                                  ExportModelOptions& options) {
        add_trained_options(app, options.trained);
        add_value(app, "-o,--output FILE", options.output, "model.onnx or model.safetensors")->required();
        app.footer(
            "Exit codes: 0 written, 2 no such run, or FILE has another ending, 3 FILE cannot be written.");
      })};
}

}  // namespace sweep
