#include "core/base/enum_names.h"

#include "tests/support/test.h"

namespace sweep::enum_names_test {

enum class Fruit { kApple, kPear };

TEST(EnumNames, GoBothWaysAndListWhatIsAllowed) {
  const EnumNames<Fruit> names("fruit", {"apple", "pear"});
  EXPECT_EQ(names.of(Fruit::kPear), "pear");
  for (const std::string& name : names.all()) EXPECT_EQ(names.of(names.parse(name)), name);
  EXPECT_EQ(names.find("plum"), std::nullopt);
  EXPECT_EQ(test::message_of<ConfigError>([&] { names.parse("plum"); }),
            "unknown fruit \"plum\"; allowed: apple, pear");
}

}  // namespace sweep::enum_names_test
