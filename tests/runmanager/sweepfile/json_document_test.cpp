// JSON with locations: what is parsed, where it is, and the messages about text that is not JSON.
#include "runmanager/text/json_document.h"

#include "core/base/file.h"
#include "core/network/arguments.h"
#include "core/network/layers.h"
#include "core/network/loss.h"
#include "core/network/optimizer.h"
#include "core/network/schedule.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "tests/support/reference_data.h"

namespace sweep::json_document_test {

std::string place_of(const JsonView& value) { return to_string(value.place()); }

std::string error_of(const std::string& text) {
  SCOPED_TRACE(text);
  return message_of<ConfigError>([&] { parse_json(text, "f.json"); });
}

TEST(JsonDocument, EveryValueAndKeyHasItsLineColumnAndPath) {
  const JsonDocument document = parse_json(
      "{\n  \"a\": [1, {\"b\\\"c\": -2.5e3}],\r\n\t\"d\" :null, \"e\": \"x,:]\", \"f\":true}", "f.json");
  const JsonView root(document);
  EXPECT_EQ(place_of(root), "f.json:1:1");
  EXPECT_EQ(place_of(root.find("a")), "f.json:2:8: a");
  EXPECT_EQ(place_of(root.find("a").at(0)), "f.json:2:9: a.0");
  EXPECT_EQ(place_of(root.find("a").at(1)), "f.json:2:12: a.1");
  const JsonView inner = root.find("a").at(1).children().at(0);
  EXPECT_EQ(to_string(inner.key_place()), "f.json:2:13: a.1.b\"c");
  EXPECT_EQ(place_of(inner), "f.json:2:21: a.1.b\"c");
  EXPECT_EQ(describe(inner), "-2.5e3");
  EXPECT_EQ(inner.number(), -2500.0);
  EXPECT_EQ(to_string(root.find("d").key_place()), "f.json:3:2: d");
  EXPECT_EQ(place_of(root.find("d")), "f.json:3:7: d");
  EXPECT_EQ(place_of(root.find("e")), "f.json:3:18: e");
  EXPECT_EQ(root.find("e").text(), "x,:]");
  EXPECT_EQ(place_of(root.find("f")), "f.json:3:30: f");
}

TEST(JsonDocument, ColumnsCountCharactersAndOffsetsCountBytes) {
  const JsonDocument root = parse_json("{\"ä€😀\": 1}", "f.json");
  const JsonPlace place = root.place({"ä€😀"});
  EXPECT_EQ(place.line_and_column(), "1:9");
  EXPECT_EQ(place.offset(), 14u);  // 2 + 3 + 4 bytes for the three characters.
}

TEST(JsonDocument, NamesTheWholeCharacterThatIsNoEscape) {
  EXPECT_THAT(error_of("\"\\é\""), HasSubstr("f.json:1:2: \\é is no escape of JSON"));
  EXPECT_THAT(error_of("\"\\\t\""), HasSubstr("f.json:1:2: \\\\u0009 is no escape of JSON"));
  EXPECT_THAT(error_of("\"\\\n\""),
              HasSubstr("f.json:1:1: the string that starts here has no closing quote"));
}

TEST(JsonDocument, SkipsTheByteOrderMarkThatSomeEditorsWrite) {
  EXPECT_EQ(parse_json("\xEF\xBB\xBF{\"a\": 1}", "f.json").place({"a"}).line_and_column(), "1:7");
}

TEST(JsonDocument, IntegersHave64Bits) {
  const nlohmann::ordered_json root =
      parse_json("[9223372036854775807, -9223372036854775808, 9223372036854775808.0, 1e2, 1.0]", "f.json")
          .json;
  EXPECT_EQ(root.at(0).get<std::int64_t>(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(root.at(1).get<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(root.at(2).is_number_float());
  EXPECT_EQ(root.at(2).get<double>(), 0x1p63);
  EXPECT_TRUE(root.at(3).is_number_float());
  EXPECT_TRUE(root.at(4).is_number_float());
}

TEST(JsonDocument, AValueOfAnotherDocumentKeepsItsPlace) {
  const JsonDocument file = parse_json("{\"lr\": 1, \"log\": {\"images\": [1,\n 2]}}", "f.json");
  JsonDocument tree = parse_json("{\"log\": {\"text\": 1}, \"seed\": 3}", "tree.json");
  tree.set(tree.json["deep"]["log"], {"deep", "log"}, JsonView(file).find("log"));
  EXPECT_EQ(to_string(tree.place({"deep", "log", "images", "1"})), "f.json:2:2: log.images.1");
  EXPECT_EQ(to_string(tree.place({"log", "text"})), "tree.json:1:18: log.text");
  JsonDocument last = parse_json("[0]", "last.json");
  last.set(last.json[0], {"0"}, tree);
  EXPECT_EQ(last.json.dump(), R"([{"log":{"text":1},"seed":3,"deep":{"log":{"images":[1,2]}}}])");
  EXPECT_EQ(to_string(last.place({"0", "deep", "log", "images"})), "f.json:1:29: log.images");
  EXPECT_EQ(to_string(last.place({"0", "seed"})), "tree.json:1:30: seed");
  EXPECT_EQ(to_string(JsonDocument(JsonView(last).at(0)).place({"deep", "log", "images"})),
            "f.json:1:29: log.images");
  last.set_place({"0", "deep"}, last.place({"0", "seed"}).whole());
  EXPECT_EQ(to_string(last.place({"0", "deep", "log", "images"})), "tree.json:1:30: seed");
}

// The bytes of a row of bad_json.json: "text", or in hexadecimal what is no text.
std::string bytes_of(const nlohmann::json& row) {
  if (row.contains("text")) return row.at("text");
  const std::string hex = row.at("hex");
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

TEST(JsonDocument, EveryBadTextIsExplainedWithItsPlace) {
  const auto rows = nlohmann::json::parse(read_file(test::reference_path("bad_json.json")));
  EXPECT_GE(rows.size(), 49u);
  for (const nlohmann::json& row : rows)
    EXPECT_THAT(error_of(bytes_of(row)), HasSubstr(row.at("message").get<std::string>())) << row;
}

TEST(JsonDocument, HasCommentsAndCommasAtTheEndOfListsAndObjects) {
  const JsonDocument root = parse_json(
      "// a sweep\n{\"a\": [1, 2 /* 3 */, ], /* \"b\": 2, */\n\"url\": \"http://x/*y*/,]\\\"//\", } // end",
      "f.json");
  EXPECT_EQ(root.json.dump(), R"({"a":[1,2],"url":"http://x/*y*/,]\"//"})");
  EXPECT_EQ(root.place({"url"}).line_and_column(), "3:8");
  EXPECT_EQ(parse_json("[/**/]", "f.json").json.size(), 0u);
}

TEST(JsonDocument, HasNoCommentsInAnOverride) {
  EXPECT_THROW(parse_json("1 // one", "override", false), ConfigError);
  EXPECT_THROW(parse_json("[1,]", "override", false), ConfigError);
}

TEST(JsonDocument, AcceptsSixtyFourBracketsInsideEachOther) {
  const JsonDocument root = parse_json(std::string(64, '[') + std::string(64, ']'), "f.json");
  EXPECT_EQ(root.json.size(), 1u);
}

// A mistake is always a ConfigError with a location inside of the file, whatever the bytes are.
void expect_value_or_located_error(const std::string& text) {
  try {
    parse_json(text, "f.json");
  } catch (const ConfigError& error) {
    std::size_t line = 0, column = 0;
    ASSERT_EQ(std::sscanf(error.what(), "f.json:%zu:%zu: ", &line, &column), 2) << error.what();
    ASSERT_LE(line, 2 + static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
    ASSERT_LE(column, text.size() + 1);
  }
}

const std::string kSample = "{\"a\": [1, -2.5e3, true, null],\n \"b\\n\": {\"c\": \"\\u00e4€\", \"d\": []}}";

TEST(JsonDocument, TextCutAnywhereIsAMistakeWithALocation) {
  for (std::size_t cut = 0; cut < kSample.size(); ++cut) {
    SCOPED_TRACE(cut);
    EXPECT_THROW(parse_json(kSample.substr(0, cut), "f.json"), ConfigError);
    expect_value_or_located_error(kSample.substr(0, cut));
  }
}

TEST(JsonDocument, TextWithAnyByteReplacedIsAValueOrAMistakeWithALocation) {
  for (std::size_t at = 0; at < kSample.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text = kSample;
      text[at] = static_cast<char>(byte);
      SCOPED_TRACE(::testing::Message() << "byte " << byte << " at " << at);
      expect_value_or_located_error(text);
    }
  }
}

TEST(JsonDocument, NumbersPrintAsPythonPrintsThem) {
  // repr() of Python 3, without the ".0" of whole numbers.
  EXPECT_EQ(number_text(0.01), "0.01");
  EXPECT_EQ(number_text(1e-5), "1e-05");
  EXPECT_EQ(number_text(0.0001), "0.0001");
  EXPECT_EQ(number_text(1e15), "1000000000000000");
  EXPECT_EQ(number_text(1e16), "1e+16");
  EXPECT_EQ(number_text(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(number_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(number_text(5e-324), "5e-324");
  EXPECT_EQ(number_text(100000), "100000");
  EXPECT_EQ(number_text(0), "0");
}

// The schema names what the tables of layers, optimizers and settings have. That it accepts the shipped
// sweeps and rejects what the program rejects is tested with a schema validator, in tests/tools.

TEST(Schema, IsOfDraft2020AndDescribesEveryKeyOfTheSweepFile) {
  const auto schema = sweep_schema();
  EXPECT_EQ(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
  for (const auto& [key, property] : schema["properties"].items())
    EXPECT_NE(property.value("description", ""), "") << key;
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_EQ(schema["properties"]["batch_size"]["default"], 100);
}

TEST(Schema, HasEveryLayerAndOptimizerWithItsArguments) {
  const std::string text = sweep_schema().dump();
  for (const NamedType& type : layer_types()) {
    EXPECT_NE(text.find("\"const\":\"" + type.name + "\""), std::string::npos) << type.name;
    for (const ArgumentType& argument : type.arguments) {
      EXPECT_NE(text.find("\"" + argument.name + "\":{"), std::string::npos) << argument.name;
    }
  }
  for (const auto& types : {optimizer_types(), loss_types(), schedule_types()}) {
    for (const NamedType& type : types)
      EXPECT_NE(text.find("\"const\":\"" + type.name + "\""), std::string::npos) << type.name;
  }
}

TEST(Schema, HoldsNoNullWhereANumberBelongs) {
  EXPECT_EQ(sweep_schema().dump().find("null"), std::string::npos);
}

}  // namespace sweep::json_document_test
