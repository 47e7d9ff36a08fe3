#include "tbwriter/event_reader.h"

#include <google/protobuf/text_format.h>
#include <sys/stat.h>

#include "tbwriter/record.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/event_files.h"
#include "tests/support/resource_limit.h"

namespace sweep::tbwriter::event_reader_test {

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
  EXPECT_EQ(read_record(record).end, ReadEnd::kBadLength);
}

// Payloads of several sizes, the empty one too.
std::vector<std::string> payloads() { return {"first", "", std::string(300, 'x'), "the last one"}; }

struct Framed {
  std::string bytes;
  std::vector<std::size_t> ends;  // of each record
};

Framed frame(const std::vector<std::string>& records) {
  Framed framed;
  for (const std::string& payload : records) {
    append_record(framed.bytes, payload);
    framed.ends.push_back(framed.bytes.size());
  }
  return framed;
}

std::size_t whole_before(const Framed& framed, std::size_t offset) {
  std::size_t n = 0;
  while (n < framed.ends.size() && framed.ends[n] <= offset) ++n;
  return n;
}

class EventReaderTest : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& bytes) {
    spill(directory_ / "events", bytes);
    return directory_ / "events";
  }
  TemporaryDirectory directory_;
};

TEST_F(EventReaderTest, KeepsWholeRecordsWhereverTheFileIsCut) {
  const Framed framed = frame(payloads());
  for (std::size_t cut = 0; cut <= framed.bytes.size(); ++cut) {
    SCOPED_TRACE(cut);
    const FileCheck check = check_events_file(write(framed.bytes.substr(0, cut)));
    const std::size_t whole = whole_before(framed, cut);
    EXPECT_EQ(check.records, whole);
    EXPECT_EQ(check.bytes, whole == 0 ? 0 : framed.ends[whole - 1]);
    EXPECT_EQ(check.end, check.bytes == cut ? ReadEnd::kEnd : ReadEnd::kTornTail);
  }
}

TEST_F(EventReaderTest, StopsBeforeAFlippedByteWhereverItIs) {
  const Framed framed = frame(payloads());
  for (std::size_t i = 0; i < framed.bytes.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      SCOPED_TRACE(i);
      const FileCheck check = check_events_file(write(flipped(framed.bytes, i, flip)));
      EXPECT_EQ(check.records, whole_before(framed, i));
      EXPECT_EQ(check.end, i < check.bytes + kRecordHeader ? ReadEnd::kBadLength : ReadEnd::kBadPayload);
    }
  }
}

TEST_F(EventReaderTest, GoesOnAfterADamagedPayloadIfAsked) {
  const Framed framed = frame(payloads());
  EventReader reader(write(flipped(framed.bytes, framed.ends[1] + kRecordHeader)));
  EXPECT_EQ(reader.next(), "first");
  EXPECT_EQ(reader.next(), "");
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.end(), ReadEnd::kBadPayload);
  EXPECT_TRUE(reader.skip_record());
  EXPECT_EQ(reader.next(), "the last one");
  EXPECT_FALSE(reader.skip_record());
}

TEST_F(EventReaderTest, NeverGoesOnAfterADamagedLength) {
  const Framed framed = frame(payloads());
  EventReader reader(write(flipped(framed.bytes, framed.ends[0])));
  EXPECT_EQ(reader.next(), "first");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.skip_record());
  EXPECT_EQ(reader.position(), framed.ends[0]);
}

TEST_F(EventReaderTest, TellsATailOfZerosFromDamage) {
  const Framed framed = frame(payloads());
  for (const std::size_t zeros : {12, 16, 4096, 3 << 20}) {
    SCOPED_TRACE(zeros);
    EXPECT_EQ(check_events_file(write(framed.bytes + std::string(zeros, '\0'))).end, ReadEnd::kZeroTail);
    const FileCheck check =
        check_events_file(write(framed.bytes + std::string(zeros, '\0') + std::string(16, 'x')));
    EXPECT_EQ(check.end, ReadEnd::kBadLength);
    EXPECT_EQ(check.bytes, framed.bytes.size());
  }
}

TEST_F(EventReaderTest, FollowsAFileThatGrows) {
  const Framed framed = frame(payloads());
  const auto file = write(framed.bytes.substr(0, framed.ends[0] + 5));
  EventReader reader(file);
  EXPECT_EQ(reader.next(), "first");
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.end(), ReadEnd::kTornTail);
  std::ofstream(file, std::ios::binary | std::ios::app) << framed.bytes.substr(framed.ends[0] + 5);
  EXPECT_EQ(reader.next(), "");
  EXPECT_EQ(reader.next(), std::string(300, 'x'));
  EXPECT_EQ(reader.next(), "the last one");
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.end(), ReadEnd::kEnd);
}

TEST_F(EventReaderTest, ReadsRecordsLargerThanItsBufferAndThanTensorBoardLikes) {
  const std::vector<std::string> large = {"a",
                                          std::string(5 << 20, 'b'),
                                          "c",
                                          "",
                                          std::string((1 << 20) - 16, 'd'),
                                          "e",
                                          "f",
                                          std::string(std::size_t{64} << 20, 'g'),
                                          "h"};
  EventReader reader(write(frame(large).bytes));
  for (const std::string& payload : large) EXPECT_TRUE(reader.next() == payload) << payload.size();
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.end(), ReadEnd::kEnd);
}

TEST_F(EventReaderTest, TakesNoMoreMemoryThanTheFileHasBytesWhateverALengthPromises) {
  std::string promise = from_hex("ffffff7f00000000");  // 2 GiB - 1
  promise += from_hex(masked_crc_hex(promise)) + "the rest";
  EventReader reader(write(promise));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const test::ResourceLimit one_gigabyte(RLIMIT_AS, rlim_t{1} << 30);
#endif
  EXPECT_NO_THROW(EXPECT_FALSE(reader.next()));
  EXPECT_EQ(reader.end(), ReadEnd::kTornTail);
}

TEST_F(EventReaderTest, NamesAFileThatIsNotThere) {
  EXPECT_THAT(test::message_of<DataError>([&] { EventReader(directory_ / "missing"); }),
              HasSubstr("missing: cannot open: No such file"));
}

TEST_F(EventReaderTest, ReadsNoPipeAndNoDevice) {
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", directory_ / "zeros");
  for (const char* name : {"pipe", "zeros", ""}) EXPECT_THROW(EventReader(directory_ / name), DataError);
}

// What protobuf's own classes write for an event with this text.
std::string encoded(const std::string& text) {
  proto::Event event;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &event)) << text;
  return event.SerializeAsString();
}

TEST(DecodeEvent, ReadsScalarsOfEveryForm) {
  const std::string payload = encoded(R"(
      wall_time: 12.5 step: -7
      summary {
        value { tag: "simple" simple_value: 0.25 }
        value { tag: "list" metadata { plugin_data { plugin_name: "scalars" content: "more" } }
                tensor { dtype: DT_FLOAT float_val: 0.5 } }
        value { tag: "content" tensor { dtype: DT_INT64 tensor_content: "\005\0\0\0\0\0\0\0" } }
        value { tag: "array" tensor { dtype: DT_DOUBLE double_val: [1, 2] } }
        value { tag: "text" tensor { dtype: DT_STRING string_val: "no number" } }
      })");
  const DecodedEvent decoded = decode_event(payload);
  EXPECT_EQ(decoded.wall_time, 12.5);
  EXPECT_EQ(decoded.step, -7);
  ASSERT_EQ(decoded.values.size(), 5u);
  EXPECT_EQ(decoded.values[0].scalar, 0.25);
  EXPECT_EQ(decoded.values[1].scalar, 0.5);
  EXPECT_EQ(decoded.values[1].plugin, "scalars");
  EXPECT_EQ(decoded.values[1].plugin_content, "more");
  EXPECT_EQ(decoded.values[2].scalar, 5.0);
  EXPECT_EQ(decoded.values[3].scalar, std::nullopt);
  EXPECT_EQ(decoded.values[4].scalar, std::nullopt);
  EXPECT_EQ(decoded.values[4].tag, "text");
}

TEST(DecodeEvent, ReadsImagesAndTexts) {
  const std::string payload = encoded(R"(
      summary {
        value { image { width: 3 height: 2 colorspace: 1 encoded_image_string: "bytes" } }
        value { tensor { dtype: DT_STRING string_val: "first" string_val: "second" } }
      })");
  const DecodedEvent decoded = decode_event(payload);
  ASSERT_EQ(decoded.values.size(), 2u);
  ASSERT_TRUE(decoded.values[0].image);
  EXPECT_EQ(decoded.values[0].image->width, 3);
  EXPECT_EQ(decoded.values[0].image->height, 2);
  EXPECT_EQ(decoded.values[0].image->bytes, "bytes");
  EXPECT_FALSE(decoded.values[0].text);
  EXPECT_EQ(decoded.values[1].text, "first");
  EXPECT_FALSE(decoded.values[1].image);
}

TEST(DecodeEvent, KnowsTheVersionAndWhereASessionStarts) {
  EXPECT_FALSE(decode_event(encoded("step: 3")).session_start);
  EXPECT_FALSE(decode_event(encoded("step: 3 session_log { status: STOP }")).session_start);
  EXPECT_TRUE(decode_event(encoded("step: 3 session_log { status: START }")).session_start);
  const std::string version = encoded("file_version: 'brain.Event:2'");
  EXPECT_EQ(decode_event(version).file_version, "brain.Event:2");
}

TEST(DecodeEvent, NeverReadsBeyondItsBytes) {
  const std::string payload = encoded(R"(
      wall_time: 1 step: 300
      summary { value { tag: "tag" metadata { plugin_data { plugin_name: "scalars" } } simple_value: 1 } })");
  for (std::size_t cut = 0; cut < payload.size(); ++cut) {
    // A copy of exactly this size, so that a sanitizer sees a read past its end. Some cuts are also messages.
    const std::string part = payload.substr(0, cut);
    try {
      decode_event(part);
    } catch (const DataError&) {
    }
  }
  EXPECT_THROW(decode_event(payload.substr(0, payload.size() - 1)), DataError);
  EXPECT_THROW(decode_event("\x0b"), DataError) << "a group";
  EXPECT_THROW(decode_event("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), DataError);
}

TEST(DecodeSession, ReadsWhatIsWritten) {
  const TemporaryDirectory directory;
  const HParams hparams = {{"lr", 0.1}, {"on", false}, {"n", std::int64_t{3}}, {"s", std::string("x")}};
  SummaryWriter writer(directory / "run");
  writer.add_hparams_start(hparams, 5);
  writer.add_hparams_end(SessionStatus::kFailure, 9);
  writer.add_hparams_experiment({});
  writer.close();
  EventReader reader(writer.path());
  DecodedSession session;
  std::vector<bool> found;
  while (const auto record = reader.next()) {
    const DecodedEvent event = decode_event(*record);
    for (const DecodedValue& value : event.values)
      found.push_back(decode_session(value.plugin_content, session));
    EXPECT_EQ(session.status.has_value(), found.size() > 1);
  }
  EXPECT_THAT(found, ElementsAre(true, true, false));
  EXPECT_EQ(session.hparams, (HParams{{"lr", 0.1}, {"on", false}, {"n", 3.0}, {"s", std::string("x")}}));
  EXPECT_EQ(session.start_time, 5);
  EXPECT_EQ(session.status, SessionStatus::kFailure);
  EXPECT_EQ(session.end_time, 9);
}

TEST(EventReader, ReadsOnAfterAReadThatFailed) {
  EventReader reader("/proc/self/mem");  // Nothing can be read at its beginning.
  for (int call = 0; call < 3; ++call) EXPECT_THROW(reader.next(), DataError) << call;
}

}  // namespace sweep::tbwriter::event_reader_test
