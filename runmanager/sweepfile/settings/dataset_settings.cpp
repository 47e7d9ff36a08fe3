// The tables of the keys of "dataset".
#include "core/data/augment.h"
#include "core/data/known_datasets.h"
#include "core/data/readers/data_format.h"
#include "core/data/split_method.h"
#include "core/spec/placement.h"
#include "runmanager/sweepfile/settings/setting_rows.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {

using namespace rows;  // NOLINT(google-build-using-namespace): tables of nothing but rows.

namespace {

using Json = nlohmann::ordered_json;

Json augment_schema() {
  Json choices = Json::array();
  for (const AugmentType& type : augment_types()) {
    const std::string name(type.name);
    Json arguments = {{"type", "object"}, {"additionalProperties", false}};
    if (type.argument.empty()) {
      choices.push_back({{"const", name}});
    } else {
      const std::string argument(type.argument);
      arguments["properties"][argument] = {{"type", "integer"}, {"minimum", 1}, {"maximum", kMaxImageExtent}};
      arguments["required"] = {argument};
    }
    Json object = {{"type", "object"}, {"additionalProperties", false}};
    object["properties"][name] = std::move(arguments);
    object["required"] = {name};
    choices.push_back(std::move(object));
  }
  Json list = list_of({{"anyOf", std::move(choices)}});
  list["maxItems"] = 16;
  return list;
}

std::vector<std::string> data_format_names() {
  std::vector<std::string> names;
  for (const DataFormat& format : data_formats()) names.emplace_back(format.name);
  return names;
}

}  // namespace

std::span<const Setting> dataset_settings() {
  static const std::vector<Setting> settings = {
      directory_name("name", listed(dataset_names()) + ", or any name with a path; default: the path's",
                     true),
      path("path", "folder, file or pattern of files, relative to this file"),
      choice("format", data_format_names(), std::nullopt, "how the files are written; default: by content"),
      count_or_fraction("validation",
                        "samples, or fraction, of the training set that is kept for validation"),
      count_or_fraction("test", "the same for a test set, of data that has none"),
      choice("split", {split_method_names().begin(), split_method_names().end()},
             split_method_name(SplitMethod::kAuto),
             "which samples these are: the last ones, any, or the same part of every class; auto: stratified "
             "for a folder of images, else end"),
      integer("split_seed", 0, kMaxExactInteger, 0,
              "start of the random numbers of split; the runs' seed does not change it"),
      integer("limit", 0, kMaxCount, 0, "use only the first so many samples; 0: all"),
      extents("resize",
              "[height, width] that images of a folder are brought to; default: they have one size"),
      boolean("grayscale", false, "images of a folder become one channel instead of three"),
      column("label", "the column of a table, or the array, with the classes; default: by its name"),
      columns("target", "the columns, or the array, of numbers to be predicted instead of classes"),
      choice("missing", {"error", "mean"}, "error",
             "values that are missing in a table or NaN in an array: the file is refused, or they become the "
             "mean "
             "of the training samples"),
      choice("categories", {"one_hot", "ordinal"}, "one_hot",
             "columns of text: a feature of 0 and 1 per category, or one feature with its number"),
      choice("decimal", {"auto", ".", ","}, "auto",
             "the mark before the fraction of a table's numbers; auto: a comma in columns that have it, if "
             "semicolons or tabs separate them"),
      choice("encoding", {"utf-8", "latin-1"}, "utf-8",
             "of a table's text; UTF-16 is known by the mark that it begins with"),
      choice(
          "unknown", {"error", "zeros"}, "error",
          "a category that was not there in training: predictions refuse its row, or have 0 in all features "
          "of its column"),
      choice("channels", {"auto", "first", "last"}, "auto",
             "where arrays of N×A×B×C have their channels; auto: by the shape, if it says so"),
      columns(
          "categorical",
          "columns of numbers that are names, such as postcodes; or the label's, if a class is called None"),
      ignored_columns("ignore",
                      "columns to leave out; \"\": a first one without a name, as pandas writes it"),
      choice("placement", {placement_names().begin(), placement_names().end()},
             placement_name(Placement::kAuto),
             "where a GPU reads the samples from: its own memory, or batches that num_workers threads gather "
             "and copy; auto: its own if they fit. The same on the CPU"),
      custom("normalize",
             "mean and std per channel, or per feature of a table: x = (v - mean) / std, where v is byte / "
             "255 or "
             "a float; train: those of the training samples, as tables have it by default; none: x = v",
             true, {.settings = normalize_settings}),
      custom("augment",
             "random changes of the training images, new ones in each epoch: random_crop, horizontal_flip, "
             "cutout",
             true, {.allowed = "a list of changes", .schema = augment_schema()}),
  };
  return settings;
}

std::span<const Setting> normalize_settings() {
  static const std::vector<Setting> settings = {channels("mean", -1e6, false), channels("std", 0, true)};
  return settings;
}

std::span<const std::string> dataset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const KnownDataset& known : known_datasets()) list.emplace_back(known.name);
    return list;
  }();
  return names;
}

}  // namespace sweep
