// The tables of the keys of "dataset".
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/base/suggest.h"
#include "core/data/augment.h"
#include "core/data/known_datasets.h"
#include "core/data/readers/readers.h"
#include "core/engine/engine.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {

using namespace rows;  // NOLINT(google-build-using-namespace): tables of nothing but rows.

namespace {

using Json = nlohmann::ordered_json;

Json change_schema() {
  Json choices = Json::array();
  for (const AugmentType& type : augment_types()) {
    const std::string name(type.name), argument(type.argument);
    if (argument.empty()) choices.push_back({{"const", name}});
    const Json number = {{"type", "integer"}, {"minimum", 1}, {"maximum", kMaxImageExtent}};
    const Json arguments =
        argument.empty() ? object_with(Json::object()) : object_with({{argument, number}}, {argument});
    choices.push_back(object_with({{name, arguments}}, {name}));
  }
  return {{"anyOf", std::move(choices)}};
}

std::vector<std::string> data_format_names() {
  std::vector<std::string> names;
  for (const DataFormat& format : data_formats()) names.emplace_back(format.name);
  return names;
}

namespace fs = std::filesystem;

bool is_known_dataset(const std::string& name, const fs::path& data_directory) {
  if (find_known_dataset(name) != nullptr) return true;
  std::error_code ignored;
  const bool plain = !name.empty() && name != "." && name != ".." &&
                     name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  return plain && !data_directory.empty() && fs::is_directory(data_directory / name, ignored);
}

void check_dataset_name(const JsonView& node, bool has_path, const ReadContext& context, Problems& problems) {
  if (node->is_string()) {
    if (has_path ? !node.text().empty() : is_known_dataset(node.text(), context.data_directory)) return;
  }
  problems.add_value(node, listed(known_dataset_names()) + ", or an object with a \"path\" for another",
                     node->is_string() ? nearest_name(node.text(), known_dataset_names()) : "");
}

// What a data set in `path` is called that has no name: "wine" for "data/wine.csv".
std::string name_of_path(const fs::path& path) {
  const std::string stem = (path.has_filename() ? path : path.parent_path()).filename().stem().string();
  const bool is_pattern = stem.find_first_of("*?[") != std::string::npos;
  return stem.empty() || is_pattern ? "data" : stem;
}

Json complete_name(const Setting&, const Given& given) {
  const JsonView path = given.object.find("path");
  if (given.value) {
    check_dataset_name(given.value, static_cast<bool>(path), given.context, given.problems);
    return given.value.text();
  }
  if (!path.text().empty()) return name_of_path(path.text());
  given.problems.add(given.object, fmt::format("\"name\" is missing, want {}, or a \"path\"",
                                               listed(known_dataset_names())));
  return nullptr;
}

// A set that is known by its name has one format.
Json complete_format(const Setting& row, const Given& given) {
  const KnownDataset* known = find_known_dataset(given.before.value("name", ""));
  Json format = complete_plain(row, given);
  if (format.is_null() && known != nullptr) format = known->format;
  return format;
}

Json complete_normalize(const Setting& row, const Given& given) {
  const JsonView& node = given.value;
  Problems& problems = given.problems;
  Json json = complete_plain(row, given);
  if (!json.is_object()) return json;
  const JsonView mean = node.find("mean"), std = node.find("std");
  if (!mean || !std) {
    problems.add(node,
                 fmt::format("{} is missing, want both \"mean\" and \"std\"", mean ? "\"std\"" : "\"mean\""));
    return nullptr;
  }
  // Samples are floats, and so is what they are normalized with.
  for (Json& list : json) list = list.get<std::vector<float>>();
  const std::size_t means = json.value("mean", Json()).size(), deviations = json.value("std", Json()).size();
  if (means != deviations && means > 0 && deviations > 0)  // Lists that were refused are empty.
    problems.add(node, fmt::format("\"mean\" has {} values and \"std\" has {}, want one per channel in both",
                                   means, deviations));
  return json;
}

// "horizontal_flip", or {"random_crop": {"padding": 4}}; null if it is wrong.
Json complete_change(const Setting&, const Given& given) {
  const JsonView& node = given.value;
  Problems& problems = given.problems;
  std::vector<std::string> names, forms;
  for (const AugmentType& type : augment_types()) {
    names.emplace_back(type.name);
    forms.push_back(type.argument.empty()
                        ? in_quotes(type.name)
                        : fmt::format("{{\"{}\": {{\"{}\": N}}}}", type.name, type.argument));
  }
  const bool is_named = node->is_object() && node->size() == 1;
  const JsonView arguments = is_named ? node.children().front() : JsonView();
  const std::string name = is_named ? arguments.key() : node.text();
  const auto type = std::ranges::find(augment_types(), name, &AugmentType::name);
  if ((!is_named && !node->is_string()) || type == augment_types().end()) {
    problems.add_value(node, listed(forms), nearest_name(name, names));
    return nullptr;
  }
  if (type->argument.empty()) {
    // An object without arguments is the long form of the name.
    if (is_named && !(arguments->is_object() && arguments->empty()))
      problems.add_value(arguments, "no arguments: " + in_quotes(name));
    return name;
  }
  const JsonView amount = arguments.find(type->argument);
  if (!amount || arguments->size() != 1) {
    problems.add_value(arguments ? arguments : node,
                       fmt::format("{{\"{}\": {{\"{}\": N}}}}", name, type->argument));
    return nullptr;
  }
  if (!amount->is_number_integer() || amount.number() < 1 || amount.number() > kMaxImageExtent) {
    problems.add_value(amount, fmt::format("an integer from 1 to {}", kMaxImageExtent));
    return nullptr;
  }
  return {{name, {{std::string(type->argument), *amount}}}};
}

// No changes are the same as no key.
Json complete_augment(const Setting& row, const Given& given) {
  if (given.value->is_array() && given.value->size() > kMaxAugmentSteps) {
    given.problems.add(given.value,
                       fmt::format("got {} changes, want at most {}", given.value->size(), kMaxAugmentSteps));
    return nullptr;
  }
  const Json changes = complete_plain(row, given);
  return changes.empty() ? Json() : changes;
}

Setting columns(std::string name, const TextRule& rule, std::string help) {
  const Setting column = text("", rule, "");
  return or_alone(list(std::move(name), "the name of a column, or a list of such names", column,
                       {.minimum = 1}, std::move(help)),
                  column);
}

constexpr TextRule kColumnName = {"the name of a column or an array",
                                  [](const std::string& text) { return !text.empty(); }, kNotEmpty};
// "" means a first column without a name.
constexpr TextRule kAnyColumnName = {kColumnName.allowed, [](const std::string&) { return true; }, kAnyText};

Json complete_dataset(const Setting& row, const Given& given) {
  if (!given.value) {
    given.problems.add(given.object, fmt::format("\"dataset\" is missing, want {} or an object",
                                                 listed(known_dataset_names())));
    return nullptr;
  }
  Json json = complete_plain(row, given);
  if (json.contains("label") && json.contains("target"))
    given.problems.add(given.value.find("target"),
                       "samples have either a \"label\" or a \"target\", not both");
  return json;
}

Setting normalize() {
  Setting row = object(
      "normalize",
      "mean and std per channel, or per feature of a table: x = (v - mean) / std, where v is byte / "
      "255 or a float; train: those of the training samples, as tables have it by default; none: x = v",
      {channels("mean", -1e6, false), channels("std", 0, true)});
  row.schema = {{"enum", {"none", "train"}}};
  row.allowed = "train, none, or an object with \"mean\" and \"std\", a list each";
  return std::move(row).if_given().completed_by(complete_normalize);
}

}  // namespace

Setting rows::dataset() {
  std::vector<Setting> keys = {
      directory_name("name", listed(known_dataset_names()) + ", or any name with a path; default: the path's")
          .completed_by(complete_name)
          .compared_apart(),
      path("path", "folder, file or pattern of files, relative to this file").compared_apart(),
      choice("format", data_format_names(), std::nullopt, "how the files are written; default: by content")
          .completed_by(complete_format),
      count_or_fraction("validation",
                        "samples, or fraction, of the training set that is kept for validation"),
      count_or_fraction("test", "the same for a test set, of data that has none").unless_default(),
      choice("split", split_method_names().all(), split_method_names().of(SplitMethod::kAuto),
             "which samples these are: the last ones, any, or the same part of every class; auto: stratified "
             "for a folder of images, else end")
          .unless_default(),
      integer("split_seed", 0, kMaxExactInteger, 0,
              "start of the random numbers of split; the runs' seed does not change it")
          .unless_default(),
      integer("limit", 0, kMaxCount, 0, "use only the first N samples; 0: all"),
      {{.name = "resize",
        .kind = ArgumentKind::kIntegerPair,
        .minimum = 1,
        .maximum = kMaxImageExtent,
        .help = "[height, width] that images of a folder are brought to; default: they have one size"}},
      boolean("grayscale", false, "images of a folder become one channel instead of three").unless_default(),
      text("label", kColumnName,
           "the column of a table, or the array, with the classes; default: by its name"),
      columns("target", kColumnName,
              "the columns, or the array, of numbers to be predicted instead of classes"),
      choice("missing", {"error", "mean"}, "error",
             "values that are missing in a table or NaN in an array: the file is refused, or they become the "
             "mean "
             "of the training samples")
          .unless_default(),
      choice("categories", {"one_hot", "ordinal"}, "one_hot",
             "columns of text: a feature of 0 and 1 per category, or one feature with its number")
          .unless_default(),
      choice("decimal", {"auto", ".", ","}, "auto",
             "the mark before the fraction of a table's numbers; auto: a comma in columns that have it, if "
             "semicolons or tabs separate them")
          .unless_default(),
      choice("encoding", {"utf-8", "latin-1"}, "utf-8",
             "of a table's text; UTF-16 is known by the mark that it begins with")
          .unless_default(),
      choice(
          "unknown", {"error", "zeros"}, "error",
          "a category that was not there in training: predictions refuse its row, or have 0 in all features "
          "of its column")
          .unless_default(),
      choice("channels", {"auto", "first", "last"}, "auto",
             "where arrays of N×A×B×C have their channels; auto: by the shape, if it says so")
          .unless_default(),
      columns(
          "categorical", kColumnName,
          "columns of numbers that are names, such as postcodes; or the label's, if a class is called None"),
      columns("ignore", kAnyColumnName,
              "columns to leave out; \"\": a first one without a name, as pandas writes it"),
      choice("placement", placement_names().all(), placement_names().of(Placement::kAuto),
             "where a GPU reads the samples from: its own memory, or batches that num_workers threads gather "
             "and copy; auto: its own if they fit. The same on the CPU")
          .of_times(),
      normalize(),
      list("augment", R"(a list such as [{"random_crop": {"padding": 4}}, "horizontal_flip"])",
           custom("", change_schema(), "").completed_by(complete_change), {.maximum = kMaxAugmentSteps},
           "random changes of the training images, new ones in each epoch: random_crop, horizontal_flip, "
           "cutout")
          .completed_by(complete_augment),
  };
  const std::span<const std::string> names = known_dataset_names();
  Setting row = object("dataset", "what to train on: a name, or an object", std::move(keys));
  row.short_key = "name";
  row.schema = {{"enum", std::vector<std::string>(names.begin(), names.end())}};
  row.allowed = listed(names) + ", or an object";
  return std::move(row).completed_by(complete_dataset);
}

}  // namespace sweep
