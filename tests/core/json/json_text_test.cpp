#include "core/json/json_text.h"

#include <nlohmann/json.hpp>

#include "tests/support/growth.h"

namespace sweep::json_text_test {

using Json = nlohmann::ordered_json;

std::string error_of(const std::string& text) {
  return test::message_of<DataError>([&text] { parse_json_text(text, "f.json:"); });
}

TEST(ParseJsonText, ReadsWhatJsonHas) {
  const std::string text =
      R"({"b":[1,-2,0.5,true,null,{}],"a":{"x":"\u00e4\n","empty":[]},"c":18446744073709551615})";
  EXPECT_EQ(parse_json_text(text, "f").dump(), Json::parse(text).dump());
  EXPECT_EQ(parse_json_text(" 7 ", "f"), 7);
}

TEST(ParseJsonText, RefusesWhatIsNoJson) {
  for (const char* text : {"", "{", "{} {}", "[1,]", "\"\xff\"", "[1e999]"})
    EXPECT_THAT(error_of(text), HasSubstr("f.json: is not valid JSON: ")) << text;
  EXPECT_THAT(error_of("// {}"), StartsWith("f.json: is not valid JSON: parse error at line 1, column 1: "));
  EXPECT_EQ(error_of(std::string("{}\0", 3)), "f.json: is not valid JSON: it has a NUL byte");
  EXPECT_EQ(error_of(R"({"a":{"b":1,"b":2}})"), "f.json: has the key \"b\" twice");
  std::string many = "{";
  for (int i = 0; i < 40; ++i) many += "\"" + std::to_string(i) + "\":0,";
  EXPECT_EQ(error_of(many + R"("3":0})"), "f.json: has the key \"3\" twice");
  EXPECT_EQ(error_of(many + R"("30":0})"), "f.json: has the key \"30\" twice");
}

TEST(ParseJsonText, RefusesDeepNestingWithoutRecursion) {
  const std::string deepest = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  EXPECT_NO_THROW(parse_json_text(deepest, "f"));
  EXPECT_EQ(error_of("[" + deepest + "]"), "f.json: is nested too deeply");
  EXPECT_EQ(error_of(std::string(1'000'000, '[')), "f.json: is nested too deeply");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(error_of(objects), "f.json: is nested too deeply");
}

TEST(JsonReason, LeavesOutTheNameOfTheException) {
  try {
    Json(7).get<std::string>();
    FAIL() << "a number is no text";
  } catch (const Json::exception& error) {
    EXPECT_EQ(json_reason(error), "type must be string, but is number");
  }
}

TEST(ReadJsonFile, NamesTheFile) {
  test::TemporaryDirectory directory;
  const auto path = directory.write("x.json", "{");
  EXPECT_THAT(test::message_of<DataError>([&] { read_json_file(path); }),
              HasSubstr(path.string() + ": is not"));
  EXPECT_EQ(read_json_file(directory.write("y.json", "{\"a\":1}")).at("a"), 1);
}

TEST(JsonPath, DotsLeadIntoObjects) {
  const Json root = {{"optimizer", {{"name", "sgd"}, {"momentum", 0.9}}}, {"lr", 0.1}};
  ASSERT_NE(find_at(root, "optimizer.momentum"), nullptr);
  EXPECT_EQ(*find_at(root, "optimizer.momentum"), 0.9);
  EXPECT_EQ(find_at(root, "lr"), &root.at("lr"));
  EXPECT_EQ(find_at(root, ""), &root);
}

TEST(JsonPath, WhatIsNotThereIsNull) {
  const Json root = {{"lr", 0.1}, {"layers", {1, 2}}};
  EXPECT_EQ(find_at(root, "momentum"), nullptr);
  EXPECT_EQ(find_at(root, "lr.value"), nullptr);
  EXPECT_EQ(find_at(root, "layers.0"), nullptr);
  EXPECT_EQ(find_at(nullptr, "lr"), nullptr);
}

}  // namespace sweep::json_text_test
