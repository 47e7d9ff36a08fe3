// Tables: columns become features, classes and values.

#include "core/base/file.h"
#include "core/data/data_from_arrays.h"
#include "core/data/readers/readers.h"
#include "tests/support/data_files.h"
#include "tests/support/dataset_rows.h"
#include "tests/support/memory_file.h"

namespace sweep::csv_test {

Dataset parse(const std::string& content, const DatasetSpec& options = {}) {
  InputFile file = test::input_file(content);
  return data_from_arrays(read_csv_file(file, {options}),
                          {.validation = options.validation, .missing = options.missing}, "FILE");
}

std::string error_of(const std::string& content, const DatasetSpec& options = {}) {
  return message_of<DataError>([&] { parse(content, options); });
}

// A row of read_tables.json; read to the end only if it says what the table "gives". Messages name the line
// and the column; keys that do not fit the table are a ConfigError.
TEST(Csv, GivesWhatItsRowSays) {
  const auto rows = nlohmann::json::parse(read_file(SWEEP_TEST_DATA "/read_tables.json"));
  ASSERT_GE(rows.size(), 80u);
  for (const auto& row : rows) {
    const DatasetSpec options = test::dataset_spec_of(row);
    test::expect_row(row, [&] {
      if (row.contains("gives")) return parse(row.at("text"), options);
      InputFile file = test::input_file(row.at("text").get<std::string>());
      read_csv_file(file, {options});
      return Dataset{};
    });
  }
}

std::vector<float> samples(const Subset& part) {
  return {part.set->floats().begin(), part.set->floats().end()};
}

TEST(Csv, RefusesIdsDatesAndFreeTextByName) {
  std::string table = "x,id,day,colour,label\n";
  for (int i = 0; i < 100; ++i) {
    table += std::to_string(i) + ",id-" + std::to_string(i) + ",2024-03-" + std::to_string(i % 31 + 1) +
             "T10:" + std::to_string(10 + i % 2) + "," + (i % 2 == 0 ? "red" : "blue") + "," +
             (i % 3 == 0 ? "a" : "b") + "\n";
  }
  EXPECT_EQ(
      error_of(table),
      "FILE: these columns tell rows apart instead of describing them: \"id\" (100 values, as \"id-0\"), "
      "\"day\" (dates, 62 values, as \"2024-03-10T10:10\"). List them under \"ignore\", or under "
      "\"categorical\" if their values are categories");
  EXPECT_THAT(parse(table, {.ignore = {"id", "day"}}).feature_names,
              ElementsAre("x", "colour=blue", "colour=red"));
  EXPECT_EQ(parse(table, {.categorical = {"id", "day"}}).feature_names.size(), 1u + 100 + 62 + 2);
}

TEST(Csv, ReadsLatin1AndUtf16) {
  const Dataset latin = parse(
      "gr\xf6\xdf"
      "e,label\n1,\xe4\n",
      {.encoding = TextEncoding::kLatin1});
  EXPECT_THAT(latin.feature_names, ElementsAre("größe"));
  EXPECT_THAT(latin.class_names, ElementsAre("ä"));
  const std::u16string text = u"größe\tlabel\n1\t😀\n2\tb\n";
  std::string little = "\xff\xfe", big = "\xfe\xff";
  for (const char16_t unit : text) {
    const char low = static_cast<char>(unit & 0xff), high = static_cast<char>(unit >> 8);
    little += {low, high};
    big += {high, low};
  }
  for (const std::string& file : {little, big}) {
    EXPECT_THAT(parse(file).feature_names, ElementsAre("größe"));
    EXPECT_THAT(parse(file).class_names, ElementsAre("b", "😀"));
    EXPECT_THAT(error_of(file.substr(0, file.size() - 1)), HasSubstr("is cut short"));
    const std::size_t first_half = file.size() - 12;  // of the pair before "\n2\tb\n"
    EXPECT_THAT(error_of(file.substr(0, first_half)), HasSubstr("is cut short"));
  }
  const TemporaryDirectory directory;
  EXPECT_TRUE(is_tsv(directory.write("t.tsv", little)));
  EXPECT_THAT(error_of(std::string("\xff\xfe,\0\0\xd8,\0", 8)), HasSubstr("is not UTF-16"));
}

TEST(Csv, ReadsRowsThatCrossTheBuffer) {
  std::string content = "x,label\n";
  for (int i = 0; i < 60'000; ++i)
    content += std::to_string(i) + ",\"class\n" + std::to_string(i % 3) + "\"\n";
  const Dataset data = parse(content);
  ASSERT_EQ(data.train.count, 60'000u);
  EXPECT_EQ(data.class_names.size(), 3u);
  for (int i = 0; i < 60'000; ++i) {
    ASSERT_EQ(samples(data.train)[static_cast<std::size_t>(i)], static_cast<float>(i));
    if (i > 100 && i < 59'000) i += 997;
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

// A row of known_columns.json: a new table for a network that was trained on three columns, the features that
// its rows become, null for NaN, the lines that they are on, and why others are skipped; or why all of it is
// "refused".
TEST(KnownColumns, GiveWhatTheirRowSays) {
  const auto rows = nlohmann::json::parse(read_file(SWEEP_TEST_DATA "/known_columns.json"));
  ASSERT_GE(rows.size(), 17u);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.dump());
    ReadOptions options{test::dataset_spec_of(row)};
    options.unlabelled = true;
    options.encoding.reset();
    options.columns = {{"size", {}, false, row.value("decimal_comma", false)},
                       {"colour", {"blue", "red"}, true},
                       {"grade", {"a", "b", "c"}, false}};
    InputFile file = test::input_file(row.at("text").get<std::string>(), "new.csv");
    if (row.contains("refused")) {
      EXPECT_THAT(message_of<DataError>([&] { read_csv_file(file, options); }),
                  HasSubstr(row.at("refused").get<std::string>()));
      continue;
    }
    const DataArrays data = read_csv_file(file, options);
    nlohmann::json values;
    for (const float value : std::get<std::vector<float>>(data.arrays.at(0).values))
      values.push_back(std::isnan(value) ? nlohmann::json() : nlohmann::json(value));
    EXPECT_EQ(values, row.at("values"));
    EXPECT_EQ(nlohmann::json(data.lines), row.at("lines"));
    ASSERT_EQ(data.skipped.size(), row.at("skipped").size());
    for (std::size_t i = 0; i < data.skipped.size(); ++i)
      EXPECT_THAT(data.skipped[i].path.string() + ": " + data.skipped[i].reason,
                  StartsWith(row.at("skipped").at(i).get<std::string>()));
  }
}

}  // namespace sweep::csv_test
