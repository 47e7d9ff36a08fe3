#include "runmanager/config/data_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "core/base/error.h"
#include "core/data/known_datasets.h"
#include "core/engine/stages.h"
#include "core/network/network.h"
#include "runmanager/config/metrics.h"
#include "runmanager/config/problems.h"

namespace sweep {
namespace {

// 8 GiB of floats; gradients and state come on top.
constexpr std::size_t kMaxParameters = std::size_t{1} << 31;

std::string origin(const RunConfig& run, const std::filesystem::path& file, const std::string& key) {
  const std::optional<std::string> place = run.where ? run.where(key) : std::nullopt;
  return place.value_or(fmt::format("{}: {}", file.string(), key));
}

bool is_given(const RunConfig& run, const std::string& key) { return run.where && run.where(key); }

// Returns the path of the first layer that does not fit, "2" or "2.layers.0", or nothing if each of them
// fits. `shape` is the input of layers[0]. Each layer is built as a network of its own, on the output of the
// one before: the whole network's error would not say which layer it is about.
std::optional<std::string> first_bad_layer(std::span<const LayerSpec> layers, Shape shape) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    LayerSpec layer = layers[i];
    layer.name = "layer";
    try {
      // A network must end with a flat output; flatten takes any shape.
      const Network alone({"", {layer, {"end", "flatten", {}}}}, shape);
      shape = alone.layers()[alone.layers().size() - 2].output;
    } catch (const ConfigError&) {
      const std::string index = std::to_string(i);
      if (const auto inner = first_bad_layer(layer.layers, shape)) return index + ".layers." + *inner;
      if (const auto inner = first_bad_layer(layer.shortcut, shape)) return index + ".shortcut." + *inner;
      return index;
    }
  }
  return std::nullopt;
}

// The names of the losses that compare numbers.
std::string losses_of_numbers() {
  std::vector<std::string> names;
  for (const NamedType& type : loss_types()) {
    if (accepts_regression(resolve_loss({type.name, {}}).kind)) names.push_back(type.name);
  }
  return listed(names);
}

void check_network(const RunConfig& run, const std::filesystem::path& file, const DataSizes& sizes,
                   Problems& problems) {
  const auto layer_origin = [&](const std::string& path) {
    return origin(run, file, "network.layers." + path);
  };
  const std::string last = std::to_string(run.network->layers.size() - 1);
  try {
    const Network network(run.network, sizes.shape);
    const auto outputs = static_cast<std::size_t>(network.output()[0]);
    const LossOptions loss = resolve_loss(run.loss);
    const std::size_t least = least_outputs(loss.kind, sizes.classes);
    if (outputs < sizes.classes && outputs != least) {
      problems.add_message(fmt::format(
          "{}: the network ends with {} outputs, want at least {}, one per class{}", layer_origin(last),
          outputs, sizes.classes, least < sizes.classes ? ", or a single one" : ""));
    }
    if (sizes.numbers > 0 && outputs != sizes.numbers) {
      problems.add_message(fmt::format("{}: the network ends with {} outputs, want {}, one per target",
                                       layer_origin(last), outputs, sizes.numbers));
    }
    if (!loss.class_weights.empty() && loss.class_weights.size() != outputs) {
      problems.add_message(fmt::format("{}: got {} class_weights, want {}, one per output of the network",
                                       origin(run, file, "loss"), loss.class_weights.size(), outputs));
    }
    if (network.parameter_count() == 0) {
      problems.add_message(fmt::format("{}: no layer has weights, so there is nothing to train",
                                       origin(run, file, "network")));
    } else if (network.parameter_count() > kMaxParameters) {
      problems.add_message(fmt::format("{}: the network has {} weights, want at most {}",
                                       origin(run, file, "network"), network.parameter_count(),
                                       kMaxParameters));
    }
  } catch (const ConfigError& error) {
    // If each layer fits, it is the end that does not.
    problems.add_message(
        fmt::format("{}: {}", layer_origin(first_bad_layer(run.network->layers, sizes.shape).value_or(last)),
                    error.what()));
  }
}

// Stages have layers of this network, on devices of the run's kind.
void check_stages(const RunConfig& run, const std::filesystem::path& file, const DataSizes& sizes,
                  Problems& problems) {
  if (!run.parallel.has_stages()) return;
  const Device device = parse_device(run.device);
  if (!run.parallel.model.empty() && parse_device(run.parallel.model.front().device).type != device.type) {
    problems.add_message(fmt::format("{}: got {}, but the run's device is {}, want devices of one kind",
                                     origin(run, file, "parallel.model"), run.parallel.model.front().device,
                                     run.device));
    return;
  }
  try {
    split_into_stages(Network(run.network, sizes.shape), run.parallel, device);
  } catch (const ConfigError& error) {
    const std::string_view message = error.what();  // "parallel.model: …"
    const std::size_t key_end = message.find(": ");
    problems.add_message(fmt::format("{}{}", origin(run, file, std::string(message.substr(0, key_end))),
                                     message.substr(key_end)));
  }
}

// Outputs of the run's network, which may be more than there are classes; the classes if it does not fit.
std::size_t outputs_of(const RunConfig& run, const DataSizes& sizes) {
  try {
    return static_cast<std::size_t>(Network(run.network, sizes.shape).output()[0]);
  } catch (const ConfigError&) {
    return sizes.classes;
  }
}

bool has_metric(const Metric& metric, const RunConfig& run, const DataSizes& sizes) {
  if (metric.part == MetricPart::kValidation && sizes.validation == 0) return false;
  switch (metric.targets) {
    case MetricTargets::kAny:
      return true;
    case MetricTargets::kClasses:
      return sizes.numbers == 0;
    case MetricTargets::kManyClasses:
      return sizes.numbers == 0 && counts_top(outputs_of(run, sizes));
    case MetricTargets::kNumbers:
      return sizes.numbers > 0;
  }
  return false;
}

// What is wrong with a metric that this data does not give, and which it gives; "" if it does.
std::string metric_problem(const std::string& metric, bool given, const RunConfig& run,
                           const DataSizes& sizes) {
  const Metric& wanted = metric_called(metric);
  if (has_metric(wanted, run, sizes)) return "";
  std::vector<std::string> allowed;
  for (const Metric* candidate : watchable_metrics()) {
    if (has_metric(*candidate, run, sizes)) allowed.emplace_back(candidate->tag);
  }
  return fmt::format("got \"{}\"{}, which {}, want {}", metric, given ? "" : " (the default metric)",
                     wanted.part == MetricPart::kValidation && sizes.validation == 0
                         ? "needs a validation set (dataset.validation)"
                         : "is not measured for such targets",
                     listed(allowed));
}

// The metric has to be one that this data gives.
void check_stop(const RunConfig& run, const std::filesystem::path& file, const DataSizes& sizes,
                Problems& problems) {
  if (!run.stop) return;
  if (metric_problem(run.stop->goal.asked, true, run, sizes).empty()) return;
  const bool given = is_given(run, "stop.metric");
  problems.add_message(fmt::format("{}: {}", origin(run, file, given ? "stop.metric" : "stop"),
                                   metric_problem(run.stop->goal.asked, given, run, sizes)));
}

// A limit is for a quick look at a file that is made for all of the data: its batches are then short. So are
// those of the default size where the set is smaller: each is the whole set.
bool may_have_short_batches(const RunConfig& run) {
  const bool is_of_file = run.where != nullptr;  // a program that makes runs gives all it wants
  return (is_of_file && !is_given(run, "batch_size")) ||
         (run.dataset.limit > 0 && run.dataset.limit < run.batch_size);
}

}  // namespace

DataSizes sizes_of(const Dataset& dataset) {
  return {.shape = dataset.shape,
          .classes = dataset.class_names.size(),
          .train = dataset.train.count,
          .numbers = dataset.target_names.size(),
          .validation = dataset.validation.count};
}

std::optional<DataSizes> known_data_sizes(const DatasetSpec& spec) {
  const KnownDataset* known = find_known_dataset(spec.name);
  if (known == nullptr || !spec.path.empty()) return std::nullopt;
  const std::size_t total = known->train_samples;
  const auto* fraction = std::get_if<double>(&spec.validation);
  const std::size_t validation = fraction != nullptr
                                     ? static_cast<std::size_t>(*fraction * static_cast<double>(total))
                                     : std::get<std::size_t>(spec.validation);
  DataSizes sizes{{known->shape.begin(), known->shape.end()},
                  known->class_names.size(),
                  validation < total ? total - validation : 0};
  sizes.validation = std::min(validation, total);
  if (spec.limit > 0) {
    sizes.train = std::min(sizes.train, spec.limit);
    sizes.validation = std::min(sizes.validation, spec.limit);
  }
  return sizes;
}

bool DataCheck::is_checked(const RunConfig& run, const DataSizes& sizes) const {
  const auto found = checked_.find(&*run.network);
  return found != checked_.end() &&
         std::any_of(found->second.begin(), found->second.end(), [&](const CheckedNetwork& checked) {
           return checked.sizes == sizes && checked.parallel == run.parallel &&
                  checked.device == run.device && checked.loss.type == run.loss.type &&
                  checked.loss.arguments == run.loss.arguments;
         });
}

void DataCheck::run(const RunConfig& run, const DataSizes& sizes) {
  const std::filesystem::path& file = file_;
  Problems& problems = problems_;
  if (sizes.train == 0) {
    problems.add_message(
        fmt::format("{}: this leaves nothing to train on", origin(run, file, "dataset.validation")));
  } else if (run.batch_size > sizes.train && !may_have_short_batches(run)) {
    problems.add_message(fmt::format("{}: got {}, want at most {}, the number of training samples",
                                     origin(run, file, "batch_size"), run.batch_size, sizes.train));
  }
  const std::vector<float>& mean = run.dataset.transform.mean;
  if (!mean.empty() && static_cast<std::int64_t>(mean.size()) != sizes.shape.at(0)) {
    problems.add_message(fmt::format("{}: got {} means, want {}, one per channel",
                                     origin(run, file, "dataset.normalize"), mean.size(), sizes.shape.at(0)));
  }
  for (const AugmentStep& step : run.augment) {
    const bool is_image = sizes.shape.size() == 3;
    const std::int64_t side = is_image ? std::min(sizes.shape[1], sizes.shape[2]) : 0;
    if (is_image && step.amount <= side) continue;
    problems.add_message(is_image
                             ? fmt::format("{}: got {} pixels, want at most {}, the side of the images",
                                           origin(run, file, "dataset.augment"), step.amount, side)
                             : fmt::format("{}: changes images, but the samples are {}",
                                           origin(run, file, "dataset.augment"), to_string(sizes.shape)));
  }
  if (sizes.numbers > 0 && !accepts_regression(resolve_loss(run.loss).kind)) {
    problems.add_message(fmt::format("{}: got {}{}, but the targets are numbers, want {}",
                                     origin(run, file, "loss"), run.loss.type,
                                     is_given(run, "loss") ? "" : " (the default)", losses_of_numbers()));
  }
  check_stop(run, file, sizes, problems);
  if (run.evaluate_first && sizes.validation == 0) {
    problems.add_message(fmt::format(
        "{}: there is no validation set to measure before training, want dataset.validation, or false",
        origin(run, file, "evaluate_first")));
  }
  if (is_checked(run, sizes)) return;
  const std::size_t problems_before = problems.size();
  check_network(run, file, sizes, problems);
  if (problems.size() == problems_before) check_stages(run, file, sizes, problems);
  checked_[&*run.network].push_back({run.network, run.loss, sizes, run.parallel, run.device});
}

void DataCheck::search(const SearchSpec& search, const RunConfig& run, const DataSizes& sizes) {
  for (const Goal& goal : search.goals) {
    const std::string problem = metric_problem(goal.asked, search.metric_given, run, sizes);
    if (!problem.empty()) problems_.add_message(fmt::format("{}: {}", search.origin, problem));
  }
}

void check_against_data(const Sweep& sweep, const std::function<DataSizes(const DatasetSpec&)>& sizes_of) {
  Problems problems;
  DataCheck check(sweep.file, problems);
  for (const RunConfig& run : sweep.runs) {
    const DataSizes sizes = sizes_of(run.dataset);
    check.run(run, sizes);
    if (sweep.search) check.search(*sweep.search, run, sizes);
  }
  problems.throw_if_any();
}

}  // namespace sweep
