#include "runmanager/config/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/base/error.h"

namespace sweep {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LogOptions, images, image_labels, graph, histograms, hparams, text, layout,
                                   predictions, batches, validation_batches)

namespace {

using Json = nlohmann::ordered_json;

Arguments arguments_of(const Json& json, const NamedType& type) {
  Arguments arguments;
  for (const ArgumentType& argument : type.arguments) {
    if (!json.contains(argument.name)) continue;
    const std::optional<ArgumentValue> value = argument_value(json.at(argument.name));
    if (!value)
      throw ConfigError(fmt::format("{} of {} is no value of an argument", argument.name, type.name));
    arguments[argument.name] = *value;
  }
  return arguments;
}

std::vector<LayerSpec> layers_of(const Json& list) {
  std::vector<LayerSpec> layers;
  for (const Json& json : list) {
    LayerSpec& layer = layers.emplace_back();
    layer.name = json.at("name");
    layer.type = json.at("type");
    layer.arguments = arguments_of(json, require_type(layer_types(), layer.type, "layer"));
    layer.layers = layers_of(json.value("layers", Json::array()));
    layer.shortcut = layers_of(json.value("shortcut", Json::array()));
  }
  return layers;
}

// What the enumeration calls the word at `key`: the one of `words` with the value's position.
template <typename Enum>
Enum choice_of(const Json& json, const char* key, std::initializer_list<std::string_view> words) {
  const auto* const word = std::ranges::find(words, json.value(key, std::string(*words.begin())));
  return static_cast<Enum>(word - words.begin());
}

std::variant<std::size_t, double> size_of(const Json& json, const char* key) {
  if (!json.contains(key)) return std::size_t{0};
  if (json.at(key).is_number_integer()) return json.at(key).get<std::size_t>();
  return json.at(key).get<double>();
}

std::vector<AugmentStep> augment_of(const Json& dataset) {
  std::vector<AugmentStep> steps;
  for (const Json& json : dataset.value("augment", Json::array())) {
    const std::string name = json.is_string() ? json.get<std::string>() : json.items().begin().key();
    const auto type = std::ranges::find(augment_types(), name, &AugmentType::name);
    const std::int64_t amount = json.is_string() ? 0 : json.front().front().get<std::int64_t>();
    steps.push_back({type->kind, amount});
  }
  return steps;
}

std::optional<StopSpec> stop_of(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return StopSpec{.goal = asked_goal(json.at("metric"), json.at("mode") == "max"),
                  .patience = json.at("patience"),
                  .min_delta = json.at("min_delta"),
                  .restore_best = json.value("restore_best", false)};  // A program has no weights.
}

PutIntoRun put_dataset(const Json& json) {
  return [dataset = dataset_of(json),
          placement = placement_names().parse(json.at("placement").get<std::string>()),
          augment = augment_of(json)](RunConfig& run) {
    run.dataset = dataset;
    run.placement = placement;
    run.augment = augment;
  };
}

using Reader = PutIntoRun (*)(const Json& value);

template <auto kMember>
using ValueOf = std::remove_cvref_t<decltype(RunConfig().*kMember)>;

// A word, a number or a structure of these; that of a new run if the run does not have the key.
template <auto kMember>
ValueOf<kMember> read_plain(const Json& json) {
  return json.is_null() ? RunConfig().*kMember : json.get<ValueOf<kMember>>();
}

// A key that is one member of a run.
template <auto kMember, auto kRead = read_plain<kMember>>
PutIntoRun put(const Json& json) {
  return [value = ValueOf<kMember>(kRead(json))](RunConfig& run) { run.*kMember = value; };
}

const std::map<std::string_view, Reader>& readers() {
  static const std::map<std::string_view, Reader> table = {
      {"dataset", put_dataset},
      {"network", put<&RunConfig::network, network_of>},
      {"optimizer", put<&RunConfig::optimizer, optimizer_of>},
      {"schedule", put<&RunConfig::schedule, schedule_of>},
      {"loss", put<&RunConfig::loss, loss_of>},
      {"clip_norm", put<&RunConfig::clip_norm>},
      {"epochs", put<&RunConfig::epochs>},
      {"evaluate_first", put<&RunConfig::evaluate_first>},
      {"seed", put<&RunConfig::seed>},
      {"repeat", put<&RunConfig::repeat>},
      {"lr", put<&RunConfig::lr>},
      {"batch_size", put<&RunConfig::batch_size>},
      {"shuffle", put<&RunConfig::shuffle>},
      {"num_workers", put<&RunConfig::num_workers>},
      {"device", put<&RunConfig::device>},
      {"deterministic", put<&RunConfig::deterministic>},
      {"parallel", put<&RunConfig::parallel, parallel_of>},
      {"accumulate", put<&RunConfig::accumulate>},
      {"stop", put<&RunConfig::stop, stop_of>},
      {"checkpoint", put<&RunConfig::checkpoint>},
      {"init", put<&RunConfig::init>},
      {"log", put<&RunConfig::log>},
  };
  return table;
}

}  // namespace

CompleteSettings::CompleteSettings(const Json& object) {
  for (const auto& [key, value] : object.items()) set(key, std::make_shared<const Json>(value));
}

CompleteSettings::Json CompleteSettings::json() const {
  Json object;
  for (const auto& [key, value] : values_) {
    if (value != nullptr) object[key] = *value;
  }
  return object;
}

std::shared_ptr<const CompleteSettings::Json> CompleteSettings::find(std::string_view key) const {
  const auto found = std::ranges::find_if(values_, [key](const auto& value) { return value.first == key; });
  return found == values_.end() ? nullptr : found->second;
}

const CompleteSettings::Json& CompleteSettings::at(std::string_view key) const {
  const std::shared_ptr<const Json> value = find(key);
  if (value == nullptr) throw ConfigError(fmt::format("the settings have no {}", key));
  return *value;
}

std::shared_ptr<const CompleteSettings::Json>& CompleteSettings::place_of(std::string_view key) {
  const auto found = std::ranges::find_if(values_, [key](const auto& known) { return known.first == key; });
  return found != values_.end() ? found->second : values_.emplace_back(key, nullptr).second;
}

CompleteSettings::Json& CompleteSettings::operator[](std::string_view key) {
  std::shared_ptr<const Json>& value = place_of(key);
  auto own = std::make_shared<Json>(value != nullptr ? *value : Json());
  value = own;
  return *own;
}

void CompleteSettings::set(std::string_view key, std::shared_ptr<const Json> value) {
  place_of(key) = value == nullptr || value->is_null() ? nullptr : std::move(value);
}

PutIntoRun read_setting(std::string_view key, const Json& value) {
  const auto reader = readers().find(key);
  return reader != readers().end() ? reader->second(value) : [](RunConfig&) {};
}

std::optional<ArgumentValue> argument_value(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_array() || !std::ranges::all_of(json, &Json::is_number)) return std::nullopt;
  // Pairs of integers keep their type; a pair of numbers is told from a list only where the kind is known.
  if (json.size() == 2 && std::ranges::all_of(json, &Json::is_number_integer))
    return json.get<std::array<std::int64_t, 2>>();
  return json.get<std::vector<double>>();
}

OptimizerOptions optimizer_of(const Json& json) {
  const std::string type = json.at("name");
  return make_optimizer(type, arguments_of(json, require_type(optimizer_types(), type, "optimizer")));
}

LossOptions loss_of(const Json& json) {
  const std::string type = json.at("name");
  return make_loss(type, arguments_of(json, require_type(loss_types(), type, "loss")));
}

ScheduleOptions schedule_of(const Json& json) {
  const std::string type = json.at("name");
  const Arguments given = arguments_of(json, require_type(schedule_types(), type, "schedule"));
  if (!json.contains("then")) return make_schedule(type, given);
  const ScheduleOptions then = schedule_of(json.at("then"));
  return make_schedule(type, given, &then);
}

DatasetSpec dataset_of(const Json& json) {
  DatasetSpec spec;
  spec.name = json.at("name");
  spec.path = json.value("path", "");
  spec.format = json.value("format", "");
  spec.validation = size_of(json, "validation");
  spec.test = size_of(json, "test");
  spec.split = split_method_names().parse(json.value("split", split_method_names().of(SplitMethod::kAuto)));
  spec.split_seed = json.value("split_seed", spec.split_seed);
  spec.limit = json.value("limit", spec.limit);
  if (json.contains("resize")) spec.resize = json.at("resize").get<std::array<std::int64_t, 2>>();
  spec.grayscale = json.value("grayscale", false);
  spec.label = json.value("label", "");
  spec.targets = json.value("target", spec.targets);
  spec.missing = choice_of<MissingValues>(json, "missing", {"error", "mean"});
  spec.categories = choice_of<Categories>(json, "categories", {"one_hot", "ordinal"});
  spec.decimal = choice_of<DecimalMark>(json, "decimal", {"auto", ".", ","});
  spec.encoding = choice_of<TextEncoding>(json, "encoding", {"utf-8", "latin-1"});
  spec.unknown = choice_of<UnknownCategory>(json, "unknown", {"error", "zeros"});
  spec.channels = choice_of<ChannelOrder>(json, "channels", {"auto", "first", "last"});
  spec.categorical = json.value("categorical", spec.categorical);
  spec.ignore = json.value("ignore", spec.ignore);
  const Json normalize = json.value("normalize", Json());
  if (normalize == "train") spec.normalization = Normalization::kTrain;
  if (normalize == "none") spec.normalization = Normalization::kNone;
  if (normalize.is_object())
    spec.transform = {normalize.at("mean").get<std::vector<float>>(),
                      normalize.at("std").get<std::vector<float>>()};
  return spec;
}

NetworkSpec network_of(const Json& json) { return {json.at("name"), layers_of(json.at("layers"))}; }

ParallelOptions parallel_of(const Json& json) {
  ParallelOptions options;
  if (!json.is_object()) return options;  // "none"
  options.data = json.value("data", options.data);
  if (json.contains("model")) {
    for (const auto& [layers, device] : json.at("model").items()) options.model.push_back({layers, device});
  }
  if (!json.contains("pipeline")) return options;
  const Json& pipeline = json.at("pipeline");
  PipelineOptions& stages = options.pipeline.emplace();
  const Json given = pipeline.value("stages", Json());
  if (given.is_number()) stages.stages = given;
  if (given.is_array()) stages.first_layers = given.get<std::vector<std::string>>();
  stages.micro_batches = pipeline.at("micro_batches");
  stages.schedule = pipeline_schedule_names().parse(pipeline.at("schedule").get<std::string>());
  return options;
}

std::string parallel_text(const ParallelOptions& options) {
  if (!options.is_parallel()) return "none";
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "+") + part; };
  if (options.data > 1) add(fmt::format("data-{}", options.data));
  for (const LayerPlacement& placement : options.model) {
    std::string device = placement.device;
    std::replace(device.begin(), device.end(), ':', '.');  // A ':' would be escaped in the names of runs.
    add(fmt::format("{}-{}", placement.layers, device));
  }
  if (const auto& pipeline = options.pipeline) {
    std::string stages = fmt::format("{}", fmt::join(pipeline->first_layers, "."));
    if (pipeline->stages > 0) stages = std::to_string(pipeline->stages);
    add(fmt::format("pipeline-{}{}{}{}", stages, stages.empty() ? "" : "x", pipeline->micro_batches,
                    pipeline->schedule == PipelineSchedule::kGpipe ? "" : "-1f1b"));
  }
  return text;
}

}  // namespace sweep
