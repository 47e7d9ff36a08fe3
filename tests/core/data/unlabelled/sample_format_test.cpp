// What a run records of its samples.
#include "core/data/sample_format.h"

#include <nlohmann/json.hpp>

#include "tests/support/test.h"

namespace sweep::sample_format_test {

using Json = nlohmann::ordered_json;

const char* const kTable =
    "size,colour,label\n1,red,yes\nNA,blue,no\n3,red,no\n2,blue,yes\n5,green,yes\n4,red,no\n";

TEST(SampleFormat, OfATableHasItsColumnsAndWhatNormalisesThem) {
  const test::TemporaryDirectory directory;
  DatasetSpec spec;
  spec.name = "t";
  spec.path = directory.write("t.csv", kTable);
  spec.missing = MissingValues::kMean;
  const SampleFormat format = load_dataset(spec);
  EXPECT_EQ(format.columns,
            (std::vector<FeatureColumn>{{"size", {}, false}, {"colour", {"blue", "green", "red"}, true}}));
  EXPECT_EQ(format.shape, Shape({4}));
  EXPECT_FALSE(format.bytes);
  EXPECT_EQ(format.class_names, (std::vector<std::string>{"no", "yes"}));
  ASSERT_EQ(format.fill_values.size(), 4u);
  EXPECT_EQ(format.fill_values[0], 3.0f) << "the mean of 1, 3, 2, 5, 4";
  EXPECT_EQ(sample_format_from_json(to_json(format), "run.json"), format);
}

TEST(SampleFormat, ThatIsNoneIsRefused) {
  const Json good = {{"shape", {1, 4, 4}},
                     {"type", "uint8"},
                     {"classes", {"a", "b"}},
                     {"normalize", {{"mean", {0.5}}, {"std", {0.25}}}}};
  EXPECT_TRUE(sample_format_from_json(good, "run.json").bytes);
  const auto refused = [&](const char* key, const Json& value) {
    Json json = good;
    json[key] = value;
    return message_of<DataError>([&] { sample_format_from_json(json, "run.json"); });
  };
  EXPECT_THAT(refused("shape", {1, 4}), HasSubstr("run.json: not a description of samples"));
  EXPECT_THAT(refused("shape", {1, -4, 4}), HasSubstr("its shape is no size"));
  EXPECT_THAT(refused("shape", {1 << 30, 1 << 30, 1 << 30}), HasSubstr("its shape is no size"));
  EXPECT_THAT(refused("targets", {"x"}), HasSubstr("neither classes nor targets"));
  EXPECT_THAT(refused("normalize", {{"mean", {0, 0}}, {"std", {1, 1}}}), HasSubstr("number of channels"));
  EXPECT_THAT(refused("normalize", {{"mean", {0}}, {"std", {0}}}), HasSubstr("not of finite numbers"));
  EXPECT_THAT(refused("missing", {1, 2}), HasSubstr("its fill values"));
  EXPECT_THAT(refused("columns", {{{"name", "x"}}}), HasSubstr("its columns make other features"));
  EXPECT_THAT(refused("type", 3), HasSubstr("not a description of samples"));
}

}  // namespace sweep::sample_format_test
