#include "runmanager/config/data_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/data/known_datasets.h"
#include "core/engine/stages.h"
#include "core/network/network.h"
#include "runmanager/config/metrics.h"
#include "runmanager/text/json_document.h"

namespace sweep {
namespace {

// 8 GiB of floats; gradients and state come on top. The CUDA engine counts them, and gaps that align, with
// int.
constexpr std::size_t kMaxParameters = (std::size_t{1} << 31) - (std::size_t{1} << 20);

// Where a run's mistakes are reported.
struct RunProblems {
  const RunConfig& run;
  const std::filesystem::path& file;
  Problems& problems;

  std::optional<std::string> place(const std::string& key) const {
    return run.where ? run.where(key) : std::nullopt;
  }
  bool is_given(const std::string& key) const { return place(key).has_value(); }
  void add(const std::string& key, const std::string& text) const {
    problems.add_message(place(key).value_or(fmt::format("{}: {}", file.string(), key)) + ": " + text);
  }
};

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
    if (accepts_regression(make_loss(type.name).kind)) names.push_back(type.name);
  }
  return listed(names);
}

void check_network(const RunConfig& run, const DataSizes& sizes, const RunProblems& problems) {
  const std::string layers = "network.layers.";
  const std::string last = layers + std::to_string(run.network->layers.size() - 1);
  try {
    const Network network(run.network, sizes.shape);
    const auto outputs = static_cast<std::size_t>(network.output()[0]);
    const LossOptions& loss = run.loss;
    const std::size_t least = least_outputs(loss.kind, sizes.classes);
    // A single one is most likely meant for numbers, of which each is a class now.
    const char* const meant = least < sizes.classes ? ", or a single one"
                              : outputs == 1        ? "; numbers to predict are named by \"target\""
                                                    : "";
    if (outputs < sizes.classes && outputs != least)
      problems.add(last, fmt::format("the network ends with {} outputs, want at least {}, one per class{}",
                                     outputs, sizes.classes, meant));
    if (sizes.numbers > 0 && outputs != sizes.numbers)
      problems.add(last, fmt::format("the network ends with {} outputs, want {}, one per target", outputs,
                                     sizes.numbers));
    if (!loss.class_weights.empty() && loss.class_weights.size() != outputs)
      problems.add("loss", fmt::format("got {} class_weights, want {}, one per output of the network",
                                       loss.class_weights.size(), outputs));
    if (network.parameter_count() == 0)
      problems.add("network", "no layer has weights, so there is nothing to train");
    else if (network.parameter_count() > kMaxParameters)
      problems.add("network", fmt::format("the network has {} weights, want at most {}",
                                          network.parameter_count(), kMaxParameters));
  } catch (const ConfigError& error) {
    // If each layer fits, it is the end that does not.
    const auto bad = first_bad_layer(run.network->layers, sizes.shape);
    problems.add(bad ? layers + *bad : last, error.what());
  }
}

// Stages have layers of this network, on devices of the run's kind.
void check_stages(const RunConfig& run, const DataSizes& sizes, const RunProblems& problems) {
  if (!run.parallel.has_stages()) return;
  const Device device = parse_device(run.device);
  const std::string first = run.parallel.model.empty() ? run.device : run.parallel.model.front().device;
  if (parse_device(first).type != device.type)
    return problems.add("parallel.model", fmt::format("got {}, but the run's device is {}, want devices of "
                                                      "one kind",
                                                      first, run.device));
  try {
    split_into_stages(Network(run.network, sizes.shape), run.parallel, device);
  } catch (const ConfigError& error) {
    const std::string message = error.what();  // "parallel.model: …"
    const std::size_t key_end = message.find(": ");
    problems.add(message.substr(0, key_end), message.substr(key_end + 2));
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

// The metric has to be one that this data gives; epoch 0 has only validation.
void check_validation(const RunConfig& run, const DataSizes& sizes, const RunProblems& problems) {
  if (run.stop) {
    const bool given = problems.is_given("stop.metric");
    const std::string problem = metric_problem(run.stop->goal.asked, given, run, sizes);
    if (!problem.empty()) problems.add(given ? "stop.metric" : "stop", problem);
  }
  if (run.evaluate_first && sizes.validation == 0)
    problems.add("evaluate_first",
                 "there is no validation set to measure before training, want dataset.validation, or false");
}

// A limit is for a quick look at a file that is made for all of the data: its batches are then short. So are
// those of the default size where the set is smaller: each is the whole set.
bool may_have_short_batches(const RunConfig& run, const RunProblems& problems) {
  const bool is_of_file = run.where != nullptr;  // a program that makes runs gives all it wants
  return (is_of_file && !problems.is_given("batch_size")) ||
         (run.dataset.limit > 0 && run.dataset.limit < run.batch_size);
}

void check_samples(const RunConfig& run, const DataSizes& sizes, const RunProblems& problems) {
  if (sizes.train == 0)
    problems.add("dataset.validation",
                 fmt::format("this leaves nothing to train on, of {} samples", sizes.validation));
  else if (run.batch_size > sizes.train && !may_have_short_batches(run, problems))
    problems.add("batch_size", fmt::format("got {}, want at most {}, the number of training samples",
                                           run.batch_size, sizes.train));
  if (sizes.classes == 1)
    problems.add("dataset", "all samples are of one class, want at least two, or targets that are numbers");
  const std::vector<float>& mean = run.dataset.transform.mean;
  if (!mean.empty() && static_cast<std::int64_t>(mean.size()) != sizes.shape.at(0))
    problems.add("dataset.normalize",
                 fmt::format("got {} means, want {}, one per channel", mean.size(), sizes.shape.at(0)));
  const bool is_image = sizes.shape.size() == 3;
  const std::int64_t side = is_image ? std::min(sizes.shape[1], sizes.shape[2]) : 0;
  for (const AugmentStep& step : run.augment) {
    if (!is_image)
      problems.add("dataset.augment",
                   fmt::format("changes images, but the samples are {}", to_string(sizes.shape)));
    else if (step.amount > side)
      problems.add("dataset.augment",
                   fmt::format("got {} pixels, want at most {}, the side of the images", step.amount, side));
  }
  if (sizes.numbers > 0 && !accepts_regression(run.loss.kind))
    problems.add("loss",
                 fmt::format("got {}{}, but the targets are numbers, want {}{}", type_of(run.loss).name,
                             problems.is_given("loss") ? "" : " (the default)", losses_of_numbers(),
                             sizes.numbers > 1 ? "; classes are one integer per sample" : ""));
}

// What the check of a network depends on.
struct CheckedNetwork {
  LossOptions loss;
  DataSizes sizes;
  ParallelOptions parallel;
  std::string device;
  bool operator==(const CheckedNetwork&) const = default;
};
using CheckedNetworks = std::unordered_map<const NetworkSpec*, std::vector<CheckedNetwork>>;

// A network that runs share is checked once.
void check_run(const RunConfig& run, const DataSizes& sizes, const std::filesystem::path& file, Problems& all,
               CheckedNetworks& checked) {
  const RunProblems problems{run, file, all};
  check_samples(run, sizes, problems);
  check_validation(run, sizes, problems);
  std::vector<CheckedNetwork>& known = checked[&*run.network];
  CheckedNetwork network{run.loss, sizes, run.parallel, run.device};
  if (std::ranges::find(known, network) != known.end()) return;
  const std::size_t problems_before = all.size();
  check_network(run, sizes, problems);
  if (all.size() == problems_before) check_stages(run, sizes, problems);
  known.push_back(std::move(network));
}

// What is beyond a limit is not read.
std::uint64_t bytes_of_part(const Subset& part) {
  if (part.count == 0) return 0;
  const std::uint64_t all = bytes_of(part.set->samples).size() + bytes_of(part.set->targets).size();
  return all * part.count / part.set->size();
}

}  // namespace

DataSizes sizes_of(const Dataset& dataset) {
  return {.shape = dataset.shape,
          .classes = dataset.class_names.size(),
          .train = dataset.train.count,
          .numbers = dataset.target_names.size(),
          .validation = dataset.validation.count,
          .test = dataset.test.count,
          .bytes =
              bytes_of_part(dataset.train) + bytes_of_part(dataset.validation) + bytes_of_part(dataset.test)};
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
  sizes.test = 10000;  // of every set that is known by its name
  if (spec.limit > 0) {
    sizes.train = std::min(sizes.train, spec.limit);
    sizes.validation = std::min(sizes.validation, spec.limit);
    sizes.test = std::min(sizes.test, spec.limit);
  }
  sizes.bytes = (sizes.train + sizes.validation + sizes.test) *
                (element_count(sizes.shape) + sizeof(std::int32_t));  // its label
  return sizes;
}

void check_against_data(const Sweep& sweep,
                        const std::function<std::optional<DataSizes>(const DatasetSpec&)>& sizes_of) {
  Problems problems;
  CheckedNetworks checked;
  for (const RunConfig& run : sweep.runs) {
    const std::optional<DataSizes> sizes = sizes_of(run.dataset);
    if (!sizes) continue;
    check_run(run, *sizes, sweep.file, problems, checked);
    if (!sweep.search) continue;
    for (const Goal& goal : sweep.search->goals) {
      const std::string problem = metric_problem(goal.asked, sweep.search->metric_given, run, *sizes);
      if (!problem.empty()) problems.add_message(fmt::format("{}: {}", sweep.search->origin, problem));
    }
  }
  problems.throw_if_any();
}

void check_against_data(const RunConfig& run, const std::filesystem::path& file, const DataSizes& sizes) {
  Problems problems;
  CheckedNetworks checked;
  check_run(run, sizes, file, problems, checked);
  problems.throw_if_any();
}

}  // namespace sweep
