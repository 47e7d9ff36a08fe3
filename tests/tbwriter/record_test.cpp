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
