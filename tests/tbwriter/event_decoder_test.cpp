#include "tbwriter/event_decoder.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "proto/tensorboard/event.pb.h"
#include "proto/tensorboard/hparams.pb.h"
#include "tbwriter/proto_encoding.h"

namespace sweep::tbwriter {
namespace {

TEST(DecodeEvent, ReadsScalarsOfEveryForm) {
  proto::Event event;
  event.set_wall_time(12.5);
  event.set_step(-7);
  auto* simple = event.mutable_summary()->add_value();
  simple->set_tag("simple");
  simple->set_simple_value(0.25f);
  auto* tensor = event.mutable_summary()->add_value();
  tensor->set_tag("tensor");
  tensor->mutable_metadata()->mutable_plugin_data()->set_plugin_name("scalars");
  tensor->mutable_tensor()->set_dtype(proto::DT_FLOAT);
  tensor->mutable_tensor()->add_float_val(0.5f);
  auto* content = event.mutable_summary()->add_value();
  content->set_tag("content");
  content->mutable_tensor()->set_dtype(proto::DT_INT64);
  content->mutable_tensor()->set_tensor_content(std::string("\x05\0\0\0\0\0\0\0", 8));
  auto* text = event.mutable_summary()->add_value();
  text->set_tag("text");
  text->mutable_tensor()->set_dtype(proto::DT_STRING);
  text->mutable_tensor()->add_string_val("no number");
  const std::string payload = event.SerializeAsString();
  const DecodedEvent decoded = decode_event(payload);
  EXPECT_EQ(decoded.wall_time, 12.5);
  EXPECT_EQ(decoded.step, -7);
  ASSERT_EQ(decoded.values.size(), 4u);
  EXPECT_EQ(decoded.values[0].scalar, 0.25);
  EXPECT_EQ(decoded.values[1].scalar, 0.5);
  EXPECT_EQ(decoded.values[1].plugin, "scalars");
  EXPECT_EQ(decoded.values[2].scalar, 5.0);
  EXPECT_EQ(decoded.values[3].scalar, std::nullopt);
  EXPECT_EQ(decoded.values[3].tag, "text");
}

TEST(DecodeEvent, ReadsImagesAndTexts) {
  proto::Event event;
  auto* image = event.mutable_summary()->add_value();
  image->set_tag("image");
  image->mutable_image()->set_width(3);
  image->mutable_image()->set_height(2);
  image->mutable_image()->set_colorspace(1);
  image->mutable_image()->set_encoded_image_string("bytes");
  auto* text = event.mutable_summary()->add_value();
  text->mutable_tensor()->set_dtype(proto::DT_STRING);
  text->mutable_tensor()->add_string_val("first");
  text->mutable_tensor()->add_string_val("second");
  const std::string payload = event.SerializeAsString();
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

TEST(DecodeEvent, KnowsWhereASessionStarts) {
  proto::Event event;
  event.set_step(3);
  EXPECT_FALSE(decode_event(event.SerializeAsString()).session_start);
  event.mutable_session_log()->set_status(proto::SessionLog::STOP);
  EXPECT_FALSE(decode_event(event.SerializeAsString()).session_start);
  event.mutable_session_log()->set_status(proto::SessionLog::START);
  EXPECT_TRUE(decode_event(event.SerializeAsString()).session_start);
}

TEST(DecodeEvent, NeverReadsBeyondItsBytes) {
  proto::Event event;
  event.set_wall_time(1);
  event.set_step(300);
  auto* value = event.mutable_summary()->add_value();
  value->set_tag("tag");
  value->set_simple_value(1);
  value->mutable_metadata()->mutable_plugin_data()->set_plugin_name("scalars");
  const std::string payload = event.SerializeAsString();
  for (std::size_t cut = 0; cut < payload.size(); ++cut) {
    // A copy of exactly this size, so that a sanitizer sees a read past its end. Some cuts are messages, too.
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

}  // namespace
}  // namespace sweep::tbwriter
