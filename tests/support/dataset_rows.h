// Rows of a JSON file about data sets: a source, keys of its data set, and what they give.
#pragma once

#include <nlohmann/json.hpp>

#include "core/data/dataset.h"
#include "tests/support/test.h"

namespace sweep::test {

/// The keys of a data set that a row has.
inline DatasetSpec dataset_spec_of(const nlohmann::json& row) {
  const auto names = [&](const char* key) { return row.value(key, std::vector<std::string>()); };
  DatasetSpec spec{.validation = row.value("validation", std::size_t{0}), .label = row.value("label", "")};
  spec.targets = names("targets");
  spec.ignore = names("ignore");
  spec.categorical = names("categorical");
  if (row.value("missing", "") == "mean") spec.missing = MissingValues::kMean;
  if (row.value("unknown", "") == "zeros") spec.unknown = UnknownCategory::kZeros;
  if (row.value("categories", "") == "ordinal") spec.categories = Categories::kOrdinal;
  if (row.contains("decimal"))
    spec.decimal = row.at("decimal") == "," ? DecimalMark::kComma : DecimalMark::kPoint;
  if (row.contains("channels"))
    spec.channels = row.at("channels") == "first" ? ChannelOrder::kFirst : ChannelOrder::kLast;
  return spec;
}

/// All that a row may say of its data set; "train" and "test" are the values of all samples.
inline nlohmann::json outcome_of(const Dataset& data) {
  nlohmann::json found = {
      {"shape", data.shape},          {"features", data.feature_names},  {"classes", data.class_names},
      {"targets", data.target_names}, {"test", nlohmann::json::array()}, {"notes", data.notes}};
  for (const FeatureColumn& column : data.columns) found["decimal_commas"].push_back(column.decimal_comma);
  const bool are_numbers = is_regression(data.train.set->targets);
  const auto add = [&](const Subset& part, const std::string& name) {
    if (part.count == 0) return;
    std::visit(
        [&](const auto& values) {
          found[name] = std::vector<float>(values.data(), values.data() + values.size());
        },
        part.set->samples);
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
        const bool are_numbers = !value.empty() && value[0].is_number();
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
