#include "tbwriter/crc32c.h"

#include <random>

#include "tests/support/test.h"

namespace sweep::tbwriter::crc32c_test {

std::string counting(int first, int step) {
  std::string bytes;
  for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<char>(first + i * step));
  return bytes;
}

class Crc32c : public testing::TestWithParam<std::uint32_t (*)(std::string_view, std::uint32_t)> {};

TEST_P(Crc32c, MatchesRfc3720) {  // section B.4
  const auto crc = GetParam();
  EXPECT_EQ(crc(std::string(32, '\0'), 0), 0x8a9136aau);
  EXPECT_EQ(crc(std::string(32, '\xff'), 0), 0x62a8ab43u);
  EXPECT_EQ(crc(counting(0, 1), 0), 0x46dd794eu);
  EXPECT_EQ(crc(counting(31, -1), 0), 0x113fdb5cu);
  const unsigned char read_command[48] = {0x01, 0xc0, 0, 0, 0, 0, 0,    0, 0,    0, 0, 0,    0, 0, 0, 0,
                                          0x14, 0,    0, 0, 0, 0, 0x04, 0, 0,    0, 0, 0x14, 0, 0, 0, 0x18,
                                          0x28, 0,    0, 0, 0, 0, 0,    0, 0x02, 0, 0, 0,    0, 0, 0, 0};
  EXPECT_EQ(crc({reinterpret_cast<const char*>(read_command), sizeof read_command}, 0), 0xd9963a56u);
}

TEST_P(Crc32c, MatchesTheCheckValueOfTheCatalogue) {
  EXPECT_EQ(GetParam()("123456789", 0), 0xe3069283u);
  EXPECT_EQ(GetParam()("", 0), 0u);
}

TEST_P(Crc32c, ContinuesWhereAnotherCallEnded) {
  const std::string text = "the same bytes, cut in two";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(GetParam()(text.substr(cut), GetParam()(text.substr(0, cut), 0)), GetParam()(text, 0)) << cut;
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, Crc32c, testing::Values(&crc32c, &crc32c_portable),
                         [](const auto& path) { return path.index == 0 ? "Fastest" : "Portable"; });

// The bitwise definition, with no tables or instructions.
std::uint32_t bit_by_bit(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
  }
  return crc ^ 0xFFFFFFFFu;
}

TEST(Crc32cPaths, AgreeWithTheDefinitionForEveryLengthAndAlignment) {
  std::mt19937 random(1);
  std::string bytes(40000, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  // The three streams of the fast path begin at 768 bytes.
  for (const std::size_t length :
       {0, 1, 7, 8, 9, 63, 383, 384, 385, 767, 768, 12287, 12288, 12289, 12672, 24577, 39000}) {
    for (const std::size_t offset : {0, 1, 3, 7}) {
      const std::string_view part(bytes.data() + offset, length);
      ASSERT_EQ(crc32c(part), bit_by_bit(part)) << length << " bytes at " << offset;
      ASSERT_EQ(crc32c_portable(part), bit_by_bit(part)) << length << " bytes at " << offset;
    }
  }
}

TEST(MaskedCrc32c, MatchesARecordThatTensorFlowWrote) {
  EXPECT_EQ(mask_crc(crc32c("\x1a\x11"
                            "CRC test, one two")),
            0x5794d08au);  // from TensorBoard's own tests
  EXPECT_EQ(mask_crc(crc32c("")), 0xa282ead8u);
}

}  // namespace sweep::tbwriter::crc32c_test
