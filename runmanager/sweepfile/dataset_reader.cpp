#include "runmanager/sweepfile/dataset_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/suggest.h"
#include "core/data/known_datasets.h"
#include "core/data/split_method.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// Sets spec.normalization or spec.transform.
void read_normalize(const JsonNode& node, DatasetSpec& spec, Problems& problems) {
  InputTransform& transform = spec.transform;
  if (node.is(JsonKind::kString) && node.text == "train") {
    spec.normalization = Normalization::kTrain;
    return;
  }
  if (node.is(JsonKind::kString) && node.text == "none") {
    spec.normalization = Normalization::kNone;
    return;
  }
  if (!node.is(JsonKind::kObject))
    return problems.add_value(node, "train, none, or an object with \"mean\" and \"std\", a list each");
  check_keys(node, normalize_settings(), problems);
  const SettingReader reader(&node, normalize_settings(), problems);
  const auto read_channels = [&](std::string_view name) {
    std::vector<float> values;
    if (const JsonNode* list = reader.find(name)) {
      for (const JsonNode& element : list->elements) values.push_back(static_cast<float>(element.number));
    }
    return values;
  };
  const JsonNode *mean = node.find("mean"), *std = node.find("std");
  if (mean == nullptr || std == nullptr) {
    problems.add(*node.location,
                 fmt::format("{} is missing, want both \"mean\" and \"std\"", mean ? "\"std\"" : "\"mean\""));
  }
  transform.mean = read_channels("mean");
  transform.std = read_channels("std");
  if (mean != nullptr && std != nullptr && transform.mean.size() != transform.std.size()) {
    problems.add(*node.location,
                 fmt::format("\"mean\" has {} values and \"std\" has {}, want one per channel in both",
                             transform.mean.size(), transform.std.size()));
  }
}

// One name, or a list of names.
std::vector<std::string> read_names(const SettingReader& reader, const char* key) {
  const JsonNode* node = reader.find(key);
  if (node == nullptr) return {};
  if (node->is(JsonKind::kString)) return {node->text};
  std::vector<std::string> names;
  for (const JsonNode& name : node->elements) names.push_back(name.text);
  return names;
}

bool is_known_dataset(const std::string& name, const fs::path& data_directory) {
  const auto known = dataset_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return true;
  std::error_code ignored;
  const bool plain = !name.empty() && name != "." && name != ".." &&
                     name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  return plain && !data_directory.empty() && fs::is_directory(data_directory / name, ignored);
}

void check_dataset_name(const JsonNode& node, bool has_path, const ReadContext& context, Problems& problems) {
  if (node.is(JsonKind::kString)) {
    if (has_path ? !node.text.empty() : is_known_dataset(node.text, context.data_directory)) return;
  }
  problems.add_value(node, listed(dataset_names()) + ", or an object with \"name\" and \"path\" for another",
                     node.is(JsonKind::kString) ? nearest_name(node.text, dataset_names()) : "");
}

constexpr std::int64_t kMostAugmentPixels = 8192;

// "horizontal_flip", or {"random_crop": {"padding": 4}}.
std::optional<AugmentStep> read_augment_step(const JsonNode& node, Problems& problems) {
  std::vector<std::string> names, forms;
  for (const AugmentType& type : augment_types()) {
    names.emplace_back(type.name);
    forms.push_back(type.argument.empty()
                        ? in_quotes(type.name)
                        : fmt::format("{{\"{}\": {{\"{}\": N}}}}", type.name, type.argument));
  }
  const bool is_named = node.is(JsonKind::kObject) && node.members.size() == 1;
  const std::string& name = is_named ? node.members.front().key : node.text;
  const auto type = std::ranges::find(augment_types(), name, &AugmentType::name);
  if ((!is_named && !node.is(JsonKind::kString)) || type == augment_types().end()) {
    problems.add_value(node, listed(forms), nearest_name(name, names));
    return std::nullopt;
  }
  if (type->argument.empty()) {
    // An object without arguments is the long form of the name.
    const bool is_plain = !is_named || (node.members.front().value.is(JsonKind::kObject) &&
                                        node.members.front().value.members.empty());
    if (!is_plain) problems.add_value(node.members.front().value, "no arguments: " + in_quotes(name));
    return AugmentStep{type->kind, 0};
  }
  const JsonNode* arguments = is_named ? &node.members.front().value : nullptr;
  const JsonNode* amount = arguments != nullptr ? arguments->find(type->argument) : nullptr;
  if (amount == nullptr || arguments->members.size() != 1) {
    problems.add_value(arguments != nullptr ? *arguments : node,
                       fmt::format("{{\"{}\": {{\"{}\": N}}}}", name, type->argument));
    return std::nullopt;
  }
  if (!amount->is(JsonKind::kInteger) || amount->integer < 1 || amount->integer > kMostAugmentPixels) {
    problems.add_value(*amount, fmt::format("an integer from 1 to {}", kMostAugmentPixels));
    return std::nullopt;
  }
  return AugmentStep{type->kind, amount->integer};
}

std::variant<std::size_t, double> count_or_fraction(const ArgumentValue& value) {
  if (const auto* count = std::get_if<std::int64_t>(&value)) return static_cast<std::size_t>(*count);
  return std::get<double>(value);
}

}  // namespace

fs::path resolved_path(const JsonNode& node, const fs::path& directory) {
  const fs::path path = node.text;
  if (path.is_absolute() || node.location == nullptr || node.location->line == 0) return path;
  return (directory / path).lexically_normal();
}

std::string name_of_path(const fs::path& path) {
  const std::string stem = (path.has_filename() ? path : path.parent_path()).filename().stem().string();
  const bool is_pattern = stem.find_first_of("*?[") != std::string::npos;
  return stem.empty() || is_pattern ? "data" : stem;
}

DatasetSpec read_dataset(const JsonNode& tree, const ReadContext& context, Problems& problems) {
  DatasetSpec dataset;
  const JsonNode* node = tree.find("dataset");
  if (node == nullptr) {
    problems.add(*tree.location,
                 fmt::format("\"dataset\" is missing, want {} or an object", listed(dataset_names())));
    return dataset;
  }
  if (node->is(JsonKind::kString)) {
    check_dataset_name(*node, false, context, problems);
    dataset.name = node->text;
    return dataset;
  }
  if (!node->is(JsonKind::kObject)) {
    problems.add_value(*node, listed(dataset_names()) + ", or an object");
    return dataset;
  }
  check_keys(*node, dataset_settings(), problems);
  const SettingReader reader(node, dataset_settings(), problems);
  if (const JsonNode* path = reader.find("path")) dataset.path = resolved_path(*path, context.directory);
  if (const JsonNode* name = node->find("name")) {
    check_dataset_name(*name, reader.given("path"), context, problems);
    dataset.name = name->text;
  } else if (!dataset.path.empty()) {
    dataset.name = name_of_path(dataset.path);
  } else {
    problems.add(*node->location,
                 fmt::format("\"name\" is missing, want {}, or a \"path\"", listed(dataset_names())));
  }
  if (const JsonNode* format = reader.find("format")) dataset.format = format->text;
  dataset.validation = count_or_fraction(reader.value("validation"));
  dataset.test = count_or_fraction(reader.value("test"));
  dataset.split = parse_split_method(reader.text("split"));
  dataset.split_seed = static_cast<std::uint64_t>(reader.integer("split_seed"));
  dataset.limit = static_cast<std::size_t>(reader.integer("limit"));
  if (reader.find("resize") != nullptr)
    dataset.resize = std::get<std::array<std::int64_t, 2>>(reader.value("resize"));
  dataset.grayscale = reader.boolean("grayscale");
  if (const JsonNode* label = reader.find("label")) dataset.label = label->text;
  dataset.targets = read_names(reader, "target");
  if (!dataset.label.empty() && !dataset.targets.empty())
    problems.add(*node->find("target")->location,
                 "samples have either a \"label\" or a \"target\", not both");
  if (reader.text("missing") == "mean") dataset.missing = MissingValues::kMean;
  if (reader.text("categories") == "ordinal") dataset.categories = Categories::kOrdinal;
  if (reader.text("decimal") == ".") dataset.decimal = DecimalMark::kPoint;
  if (reader.text("decimal") == ",") dataset.decimal = DecimalMark::kComma;
  if (reader.text("encoding") == "latin-1") dataset.encoding = TextEncoding::kLatin1;
  if (reader.text("unknown") == "zeros") dataset.unknown = UnknownCategory::kZeros;
  if (reader.text("channels") == "first") dataset.channels = ChannelOrder::kFirst;
  if (reader.text("channels") == "last") dataset.channels = ChannelOrder::kLast;
  dataset.categorical = read_names(reader, "categorical");
  dataset.ignore = read_names(reader, "ignore");
  if (const JsonNode* normalize = node->find("normalize")) read_normalize(*normalize, dataset, problems);
  return dataset;
}

Placement read_placement(const JsonNode& tree, Problems& problems) {
  const JsonNode* node = tree.find("dataset");
  if (node == nullptr || !node->is(JsonKind::kObject)) return Placement::kAuto;
  return parse_placement(SettingReader(node, dataset_settings(), problems).text("placement"));
}

std::vector<AugmentStep> read_augment(const JsonNode& tree, Problems& problems) {
  const JsonNode* dataset = tree.find("dataset");
  const JsonNode* list = dataset != nullptr ? dataset->find("augment") : nullptr;
  if (list == nullptr) return {};
  if (!list->is(JsonKind::kArray)) {
    problems.add_value(*list, R"(a list such as [{"random_crop": {"padding": 4}}, "horizontal_flip"])");
    return {};
  }
  std::vector<AugmentStep> steps;
  for (const JsonNode& node : list->elements) {
    if (const auto step = read_augment_step(node, problems)) steps.push_back(*step);
  }
  if (list->elements.size() > kMostAugmentSteps)
    problems.add(*list->location,
                 fmt::format("got {} changes, want at most {}", list->elements.size(), kMostAugmentSteps));
  return steps;
}

nlohmann::ordered_json dataset_json(const DatasetSpec& dataset, Placement placement,
                                    std::span<const AugmentStep> augment) {
  nlohmann::ordered_json json = {{"name", dataset.name}};
  if (!dataset.path.empty()) json["path"] = dataset.path.string();
  // A set that is known by its name has one format. Keys at their defaults are left out where earlier
  // versions did not have them, so that runs of those stay the same runs.
  const KnownDataset* known = find_known_dataset(dataset.name);
  if (!dataset.format.empty())
    json["format"] = dataset.format;
  else if (known != nullptr)
    json["format"] = known->format;
  const auto set_size = [&](const char* key, const std::variant<std::size_t, double>& size) {
    std::visit([&](const auto& value) { json[key] = value; }, size);
  };
  set_size("validation", dataset.validation);
  if (dataset.test != DatasetSpec{}.test) set_size("test", dataset.test);
  if (dataset.split != SplitMethod::kAuto) json["split"] = split_method_name(dataset.split);
  if (dataset.split_seed != 0) json["split_seed"] = dataset.split_seed;
  json["limit"] = dataset.limit;
  if (dataset.resize) json["resize"] = *dataset.resize;
  if (dataset.grayscale) json["grayscale"] = true;
  if (!dataset.label.empty()) json["label"] = dataset.label;
  if (!dataset.targets.empty()) json["target"] = dataset.targets;
  if (dataset.missing == MissingValues::kMean) json["missing"] = "mean";
  if (dataset.categories == Categories::kOrdinal) json["categories"] = "ordinal";
  if (dataset.decimal != DecimalMark::kAuto)
    json["decimal"] = dataset.decimal == DecimalMark::kComma ? "," : ".";
  if (dataset.encoding == TextEncoding::kLatin1) json["encoding"] = "latin-1";
  if (dataset.unknown == UnknownCategory::kZeros) json["unknown"] = "zeros";
  if (dataset.channels != ChannelOrder::kAuto)
    json["channels"] = dataset.channels == ChannelOrder::kFirst ? "first" : "last";
  if (!dataset.categorical.empty()) json["categorical"] = dataset.categorical;
  if (!dataset.ignore.empty()) json["ignore"] = dataset.ignore;
  json["placement"] = placement_name(placement);
  if (!dataset.transform.mean.empty()) {
    json["normalize"] = {{"mean", dataset.transform.mean}, {"std", dataset.transform.std}};
  } else if (dataset.normalization != Normalization::kAuto) {
    json["normalize"] = dataset.normalization == Normalization::kTrain ? "train" : "none";
  }
  for (const AugmentStep& step : augment) {
    const AugmentType& type = *std::ranges::find(augment_types(), step.kind, &AugmentType::kind);
    const std::string name(type.name);
    if (type.argument.empty())
      json["augment"].push_back(name);
    else
      json["augment"].push_back({{name, {{std::string(type.argument), step.amount}}}});
  }
  return json;
}

}  // namespace sweep
