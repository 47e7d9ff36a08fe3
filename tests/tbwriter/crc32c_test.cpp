#include "tbwriter/record.h"

#include <random>

#include "tests/support/test.h"

namespace sweep::tbwriter::crc32c_test {

std::string counting(int first, int step) {
  std::string bytes;
  for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<char>(first + i * step));
  return bytes;
}

TEST(Crc32c, MatchesRfc3720) {  // section B.4
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(counting(0, 1)), 0x46dd794eu);
  EXPECT_EQ(crc32c(counting(31, -1)), 0x113fdb5cu);
  const unsigned char read_command[48] = {0x01, 0xc0, 0, 0, 0, 0, 0,    0, 0,    0, 0, 0,    0, 0, 0, 0,
                                          0x14, 0,    0, 0, 0, 0, 0x04, 0, 0,    0, 0, 0x14, 0, 0, 0, 0x18,
                                          0x28, 0,    0, 0, 0, 0, 0,    0, 0x02, 0, 0, 0,    0, 0, 0, 0};
  EXPECT_EQ(crc32c({reinterpret_cast<const char*>(read_command), sizeof read_command}), 0xd9963a56u);
}

TEST(Crc32c, MatchesTheCheckValueOfTheCatalogue) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(Crc32c, ContinuesWhereAnotherCallEnded) {
  const std::string text = "the same bytes, cut in two";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(text.substr(cut), crc32c(text.substr(0, cut), 0)), crc32c(text, 0)) << cut;
  }
}

// The bitwise definition, with no tables or instructions.
std::uint32_t bit_by_bit(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
  }
  return crc ^ 0xFFFFFFFFu;
}

TEST(Crc32c, AgreesWithTheDefinitionForEveryLengthAndAlignment) {
  std::mt19937 random(1);
  std::string bytes(40000, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  // ISA-L begins at 256 bytes.
  for (const std::size_t length : {0,   1,   7,   8,   9,     63,    255,   256,   257,   383,
                                   384, 385, 767, 768, 12287, 12288, 12289, 12672, 24577, 39000}) {
    for (const std::size_t offset : {0, 1, 3, 7}) {
      const std::string_view part(bytes.data() + offset, length);
      ASSERT_EQ(crc32c(part), bit_by_bit(part)) << length << " bytes at " << offset;
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
