// Tables with mistakes: the message names file, line and column.

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/data/readers/readers.h"
#include "tests/support/memory_file.h"
#include "tests/support/test.h"

namespace sweep::malformed_csv_test {

void parse(const std::string& content, const DatasetSpec& options = {}) {
  InputFile file = test::input_file(content);
  read_csv_file(file, {options});
}

std::string error_of(const std::string& content, const DatasetSpec& options = {}) {
  return message_of<DataError>([&] { parse(content, options); });
}

// A row of bad_tables.json: a table, keys of the data set, and the whole "message" or a part that it "has",
// unless the table is good. Keys that do not fit it are a ConfigError.
TEST(MalformedCsv, IsRefusedWithTheLineAndTheColumn) {
  const auto rows = nlohmann::json::parse(read_file(SWEEP_TEST_DATA "/bad_tables.json"));
  ASSERT_GE(rows.size(), 50u);
  for (const auto& row : rows) {
    const auto names = [&](const char* key) { return row.value(key, std::vector<std::string>()); };
    DatasetSpec options{.label = row.value("label", ""), .targets = names("targets")};
    options.ignore = names("ignore");
    options.categorical = names("categorical");
    if (row.value("missing", "") == "mean") options.missing = MissingValues::kMean;
    const bool is_about_names = row.contains("label") || row.contains("targets");
    std::string message;
    try {
      parse(row.at("text"), options);
    } catch (const Error& error) {
      message = error.what();
      EXPECT_EQ(dynamic_cast<const ConfigError*>(&error) != nullptr, is_about_names) << row;
    }
    EXPECT_EQ(message.empty(), !row.contains("message") && !row.contains("has")) << row;
    EXPECT_EQ(message, row.value("message", message)) << row;
    EXPECT_THAT(message, HasSubstr(row.value("has", ""))) << row;
  }
}

TEST(MalformedCsv, RefusesFieldsWithoutEnd) {
  EXPECT_THAT(error_of("x,label\n1,\"" + std::string(2 << 20, 'a') + "\"\n"),
              HasSubstr("field 2 has more than 1 MiB; a closing quote may be missing"));
}

TEST(MalformedCsv, RefusesWhatIsNotUtf8) {
  EXPECT_THAT(
      error_of("x,label\n1,\xe9\n"),
      HasSubstr("line 2, column \"label\": is not UTF-8; if it is Latin-1, set \"encoding\": \"latin-1\""));
  EXPECT_THAT(error_of("\xe9,label\n1,a\n"),
              HasSubstr("the name of column 1 is not UTF-8; if it is Latin-1, set \"encoding\""));
}

TEST(MalformedCsv, RefusesTooManyCategories) {
  std::string content = "name,label\n";
  for (int i = 0; i <= 1000; ++i) content += "n" + std::to_string(i) + ",a\n";
  EXPECT_THAT(error_of(content), HasSubstr("\"name\" (1001 values, as \"n0\")"));
  EXPECT_EQ(error_of(content, {.categorical = {"name"}}),
            "FILE: line 1002, column \"name\": more than 1000 categories; the first value is \"n0\"; a "
            "column that only tells rows apart can be listed under \"ignore\"");
}

}  // namespace sweep::malformed_csv_test
