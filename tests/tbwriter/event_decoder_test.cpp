#include "tbwriter/event_reader.h"

#include <google/protobuf/text_format.h>

#include "proto/tensorboard/event.pb.h"
#include "tbwriter/encoding.h"
#include "tests/support/test.h"

namespace sweep::tbwriter::event_decoder_test {

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
  DecodedSession session;
  EXPECT_TRUE(decode_session(
      encode_session_start({{"lr", 0.1}, {"on", false}, {"n", std::int64_t{3}}, {"s", std::string("x")}}, 5),
      session));
  EXPECT_EQ(session.hparams, (HParams{{"lr", 0.1}, {"on", false}, {"n", 3.0}, {"s", std::string("x")}}));
  EXPECT_EQ(session.start_time, 5);
  EXPECT_FALSE(session.status);
  EXPECT_TRUE(decode_session(encode_session_end(SessionStatus::kFailure, 9), session));
  EXPECT_EQ(session.status, SessionStatus::kFailure);
  EXPECT_EQ(session.end_time, 9);
  EXPECT_FALSE(decode_session(encode_experiment({}, 1), session));
}

}  // namespace sweep::tbwriter::event_decoder_test
