#include "core/json/json_path.h"

#include <nlohmann/json.hpp>

#include "tests/support/test.h"

namespace sweep::json_path_test {

TEST(JsonPath, DotsLeadIntoObjects) {
  const nlohmann::ordered_json root = {{"optimizer", {{"name", "sgd"}, {"momentum", 0.9}}}, {"lr", 0.1}};
  ASSERT_NE(find_at(root, "optimizer.momentum"), nullptr);
  EXPECT_EQ(*find_at(root, "optimizer.momentum"), 0.9);
  EXPECT_EQ(find_at(root, "lr"), &root.at("lr"));
  EXPECT_EQ(find_at(root, ""), &root);
}

TEST(JsonPath, WhatIsNotThereIsNull) {
  const nlohmann::ordered_json root = {{"lr", 0.1}, {"layers", {1, 2}}};
  EXPECT_EQ(find_at(root, "momentum"), nullptr);
  EXPECT_EQ(find_at(root, "lr.value"), nullptr);
  EXPECT_EQ(find_at(root, "layers.0"), nullptr);
  EXPECT_EQ(find_at(nullptr, "lr"), nullptr);
}

}  // namespace sweep::json_path_test
