// Rows of a JSON file about data sets: a source, keys of its data set, and what they give.
#pragma once

#include <nlohmann/json.hpp>

#include "core/data/dataset.h"
#include "tests/support/test.h"

namespace sweep::test {

/// Numbers, of which null is NaN.
inline std::vector<float> floats_from(const nlohmann::json& values) {
  std::vector<float> floats;
  for (const auto& value : values) floats.push_back(value.is_null() ? NAN : value.get<float>());
  return floats;
}

/// The keys of a data set that a row has.
inline DatasetSpec dataset_spec_of(const nlohmann::json& row) {
  const auto names = [&](const char* key) { return row.value(key, std::vector<std::string>()); };
  const auto size = [&](const char* key) -> std::variant<std::size_t, double> {
    if (!row.contains(key)) return std::size_t{0};
    if (row.at(key).is_number_integer()) return row.at(key).get<std::size_t>();
    return row.at(key).is_number() ? row.at(key).get<double>() : row.at(key).is_null() ? NAN : HUGE_VAL;
  };
  DatasetSpec spec{.name = row.value("name", ""),
                   .format = row.value("format", ""),
                   .validation = size("validation"),
                   .test = size("test"),
                   .split = split_method_names().parse(row.value("split", "auto")),
                   .split_seed = row.value("split_seed", std::uint64_t{0}),
                   .limit = row.value("limit", std::size_t{0}),
                   .grayscale = row.value("grayscale", false),
                   .label = row.value("label", "")};
  spec.targets = names("targets");
  spec.ignore = names("ignore");
  spec.categorical = names("categorical");
  if (row.contains("transform"))
    spec.transform = {floats_from(row.at("transform").at(0)), floats_from(row.at("transform").at(1))};
  if (row.contains("resize")) spec.resize = row.at("resize").get<std::array<std::int64_t, 2>>();
  if (row.value("normalize", "") == "train") spec.normalization = Normalization::kTrain;
  if (row.value("missing", "") == "mean") spec.missing = MissingValues::kMean;
  if (row.value("unknown", "") == "zeros") spec.unknown = UnknownCategory::kZeros;
  if (row.value("categories", "") == "ordinal") spec.categories = Categories::kOrdinal;
  if (row.contains("decimal"))
    spec.decimal = row.at("decimal") == "," ? DecimalMark::kComma : DecimalMark::kPoint;
  if (row.contains("channels"))
    spec.channels = row.at("channels") == "first" ? ChannelOrder::kFirst : ChannelOrder::kLast;
  return spec;
}

/// All that a row may say of its data set; "train", "validation" and "test" are the values of their samples.
inline nlohmann::json outcome_of(const Dataset& data) {
  nlohmann::json found = {
      {"shape", data.shape},          {"features", data.feature_names},  {"classes", data.class_names},
      {"targets", data.target_names}, {"test", nlohmann::json::array()}, {"notes", data.notes},
      {"format", data.format},        {"mean", data.transform.mean},     {"std", data.transform.std}};
  for (const FeatureColumn& column : data.columns) found["decimal_commas"].push_back(column.decimal_comma);
  for (const DataFile& file : data.files) found["files"].push_back(file.path.string());
  const bool are_numbers = is_regression(data.train.set->targets);
  const auto add = [&](const Subset& part, const std::string& name) {
    if (part.count == 0) return;
    std::vector<float> all;
    for (std::size_t i = 0; i < part.count; ++i)
      std::visit([&](const auto& sample) { all.insert(all.end(), sample.begin(), sample.end()); },
                 part.set->sample(part.row(i)));
    found[name] = all;
    if (are_numbers) {
      found[name + "_numbers"] = part.numbers();
    } else {
      found[name + "_labels"] = part.labels();
    }
  };
  add(data.train, "train");
  add(data.validation, "validation");
  add(data.test, "test");
  return found;
}

/// Compares what a row "gives", if that is a data set of which it says something, with the data set that
/// `read` returns; or the whole "message", or a part that it "has", with that of the DataError which it
/// throws: a ConfigError where the row says "config".
inline void expect_row(const nlohmann::json& row, const std::function<Dataset()>& read) {
  SCOPED_TRACE(row.dump());
  std::string message;
  try {
    const Dataset data = read();
    if (row.contains("gives")) {
      const nlohmann::json found = outcome_of(data);
      for (const auto& [key, value] : row.at("gives").items()) {
        const bool are_numbers = value.is_array() && !value.empty() && value[0].is_number();
        EXPECT_EQ(found.at(key), are_numbers ? nlohmann::json(value.get<std::vector<float>>()) : value)
            << key;
      }
    }
  } catch (const Error& error) {
    message = error.what();
    EXPECT_EQ(dynamic_cast<const ConfigError*>(&error) != nullptr, row.contains("config"));
    EXPECT_EQ(dynamic_cast<const DataError*>(&error) != nullptr, !row.contains("config"));
  }
  EXPECT_EQ(message.empty(), !row.contains("message") && !row.contains("has"));
  EXPECT_EQ(message, row.value("message", message));
  EXPECT_THAT(message, HasSubstr(row.value("has", "")));
}

}  // namespace sweep::test
