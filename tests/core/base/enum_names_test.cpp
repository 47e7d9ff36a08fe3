#include "core/base/enum_names.h"

#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace sweep {
namespace {

enum class Fruit { kApple, kPear };

TEST(EnumNames, GoBothWaysAndListWhatIsAllowed) {
  const EnumNames<Fruit> names("fruit", {"apple", "pear"});
  EXPECT_EQ(names.of(Fruit::kPear), "pear");
  for (const std::string& name : names.all()) EXPECT_EQ(names.of(names.parse(name)), name);
  EXPECT_EQ(names.find("plum"), std::nullopt);
  EXPECT_EQ(test::message_of<ConfigError>([&] { names.parse("plum"); }),
            "unknown fruit \"plum\"; allowed: apple, pear");
}

}  // namespace
}  // namespace sweep
