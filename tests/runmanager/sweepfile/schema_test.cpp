// The schema names what the tables of layers, optimizers and settings have. That it accepts the shipped
// sweeps and rejects what the program rejects is tested with a schema validator, in tests/tools.
#include "runmanager/sweepfile/sweep_file.h"

#include "core/network/layers.h"
#include "core/network/loss.h"
#include "core/network/optimizer.h"
#include "core/network/schedule.h"
#include "tests/support/test.h"

namespace sweep::schema_test {

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
  std::vector<NamedType> named(optimizer_types().begin(), optimizer_types().end());
  named.insert(named.end(), loss_types().begin(), loss_types().end());
  named.insert(named.end(), schedule_types().begin(), schedule_types().end());
  for (const NamedType& type : named) {
    EXPECT_NE(text.find("\"const\":\"" + type.name + "\""), std::string::npos) << type.name;
  }
}

TEST(Schema, LayersHoldLayers) {
  const auto schema = sweep_schema();
  EXPECT_EQ(schema["$defs"]["network"]["properties"]["layers"]["$ref"], "#/$defs/layers");
  EXPECT_EQ(schema["$defs"]["layers"]["items"]["$ref"], "#/$defs/layer");
  for (const auto& layer : schema["$defs"]["layer"]["oneOf"]) {
    const std::string type = layer["properties"]["type"]["const"];
    EXPECT_EQ(layer["properties"].contains("layers"), has_inner_layers(type)) << type;
    EXPECT_EQ(layer["properties"].contains("shortcut"), type == "residual") << type;
    const auto required = layer["required"].get<std::vector<std::string>>();
    EXPECT_EQ(std::count(required.begin(), required.end(), "layers"), has_inner_layers(type) ? 1 : 0) << type;
  }
}

TEST(Schema, HoldsNoNullWhereANumberBelongs) {
  EXPECT_EQ(sweep_schema().dump().find("null"), std::string::npos);
}

}  // namespace sweep::schema_test
