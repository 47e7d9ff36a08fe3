#include "tbwriter/record.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/event_files.h"

namespace sweep::tbwriter {
namespace {

TEST(Record, HasTheBytesThatTensorBoardsOwnWriterGives) {
  std::string version;
  append_record(version, from_hex("0900000040fc54d9411a0d627261696e2e4576656e743a32"));
  EXPECT_EQ(to_hex(version),
            "1800000000000000a37f4b220900000040fc54d9411a0d627261696e2e4576656e743a32eced8f9d");
  std::string scalar;
  append_record(scalar, from_hex("0900000040fc54d94110072a0d0a0b0a046c6f7373150000003f"));
  EXPECT_EQ(to_hex(scalar),
            "1a00000000000000129bd82d0900000040fc54d94110072a0d0a0b0a046c6f7373150000003f2c75eab7");
}

TEST(Record, IsIncompleteWhereverItIsCut) {
  std::string record;
  append_record(record, "payload");
  for (std::size_t cut = 0; cut < record.size(); ++cut) {
    EXPECT_EQ(read_record(record.substr(0, cut)).state, RecordView::State::kIncomplete) << cut;
  }
  EXPECT_EQ(read_record(record).state, RecordView::State::kWhole);
  EXPECT_EQ(read_record(record + "next").payload, "payload");
}

TEST(Record, WithAFlippedByteIsNeverWhole) {
  std::string record;
  append_record(record, "payload");
  for (std::size_t i = 0; i < record.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      std::string damaged = record;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      const auto state = read_record(damaged).state;
      EXPECT_EQ(state, i < kRecordHeader ? RecordView::State::kBadLength : RecordView::State::kBadPayload)
          << i;
    }
  }
}

TEST(Record, LongerThanAnyMessageIsDamageAndNotAPromise) {
  // Length 2^40 with a right checksum of its own: TensorBoard's data server tries to allocate that.
  std::string record = from_hex("0000000000010000");
  record += from_hex(masked_crc_hex(record));
  EXPECT_EQ(read_record(record).state, RecordView::State::kBadLength);
}

TEST(Record, MayBeEmpty) {
  std::string record;
  append_record(record, "");
  EXPECT_EQ(record.size(), 16u);
  EXPECT_EQ(read_record(record).state, RecordView::State::kWhole);
}

}  // namespace
}  // namespace sweep::tbwriter
