#include "tbwriter/event_decoder.h"

#include "tbwriter/proto_encoding.h"
#include "tbwriter/wire_reader.h"

namespace sweep::tbwriter {
namespace {

using wire::Field;
using wire::Fields;

template <class Number>
std::optional<double> only_number(std::string_view bytes) {
  if (bytes.size() != sizeof(Number)) return {};
  Number value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return static_cast<double>(value);
}

// The value of a tensor with one number, as TensorFlow 2 writes scalars; nothing for arrays and text.
std::optional<double> decode_number(std::string_view tensor) {
  Field field;
  std::int64_t type = 0;
  std::string_view content;
  std::optional<double> number;
  for (Fields fields(tensor); fields.next(field);) {
    if (field.number == 1) type = field.as_integer();
    if (field.number == 4) content = field.as_bytes();
    if (field.number == 5) {
      number = field.type == wire::kFixed32 ? std::optional<double>(field.as_float())
                                            : only_number<float>(field.as_bytes());
    }
    if (field.number == 6) {
      number = field.type == wire::kFixed64 ? std::optional<double>(field.as_double())
                                            : only_number<double>(field.as_bytes());
    }
  }
  if (number || content.empty()) return number;
  if (type == kDtFloat) return only_number<float>(content);
  if (type == kDtDouble) return only_number<double>(content);
  if (type == kDtInt64) return only_number<std::int64_t>(content);
  return {};
}

std::optional<std::string_view> first_string(std::string_view tensor) {
  Field field;
  for (Fields fields(tensor); fields.next(field);) {
    if (field.number == 8) return field.as_bytes();
  }
  return {};
}

DecodedImage decode_image(std::string_view message) {
  DecodedImage image;
  Field field;
  for (Fields fields(message); fields.next(field);) {
    if (field.number == 1) image.height = field.as_integer();
    if (field.number == 2) image.width = field.as_integer();
    if (field.number == 4) image.bytes = field.as_bytes();
  }
  return image;
}

void decode_metadata(std::string_view metadata, DecodedValue& value) {
  Field field, part;
  for (Fields fields(metadata); fields.next(field);) {
    if (field.number != 1) continue;
    for (Fields parts(field.as_bytes()); parts.next(part);) {
      if (part.number == 1) value.plugin = part.as_bytes();
      if (part.number == 2) value.plugin_content = part.as_bytes();
    }
  }
}

DecodedValue decode_value(std::string_view message) {
  DecodedValue value;
  Field field;
  std::string_view tensor;
  for (Fields fields(message); fields.next(field);) {
    if (field.number == 1) value.tag = field.as_bytes();
    if (field.number == 2 && field.type == wire::kFixed32) value.scalar = field.as_float();
    if (field.number == 4) value.image = decode_image(field.as_bytes());
    if (field.number == 8) tensor = field.as_bytes();
    if (field.number == 9) decode_metadata(field.as_bytes(), value);
  }
  if (!tensor.empty()) {
    value.scalar = decode_number(tensor);
    value.text = first_string(tensor);
  }
  return value;
}

// google.protobuf.Value of a hyperparameter; nothing for null, lists and structures.
std::optional<HParamValue> decode_hparam(std::string_view message) {
  Field field;
  std::optional<HParamValue> value;
  for (Fields fields(message); fields.next(field);) {
    if (field.number == 2) value = field.as_double();
    if (field.number == 3) value = std::string(field.as_bytes());
    if (field.number == 4) value = field.as_integer() != 0;
  }
  return value;
}

void decode_start(std::string_view message, DecodedSession& session) {
  Field field, part;
  for (Fields fields(message); fields.next(field);) {
    if (field.number == 5) session.start_time = field.as_double();
    if (field.number != 1) continue;
    std::string name;
    std::optional<HParamValue> value;
    for (Fields parts(field.as_bytes()); parts.next(part);) {
      if (part.number == 1) name = std::string(part.as_bytes());
      if (part.number == 2) value = decode_hparam(part.as_bytes());
    }
    if (value) session.hparams.emplace_back(std::move(name), *std::move(value));
  }
}

void decode_end(std::string_view message, DecodedSession& session) {
  session.status = SessionStatus::kUnknown;
  Field field;
  for (Fields fields(message); fields.next(field);) {
    if (field.number == 1 && field.as_integer() >= 0 && field.as_integer() <= 3) {
      session.status = static_cast<SessionStatus>(field.as_integer());
    }
    if (field.number == 2) session.end_time = field.as_double();
  }
}

bool is_session_start(std::string_view session_log) {
  constexpr std::int64_t kStart = 1;
  Field field;
  bool start = false;
  for (Fields fields(session_log); fields.next(field);) {
    if (field.number == 1) start = field.as_integer() == kStart;
  }
  return start;
}

}  // namespace

DecodedEvent decode_event(std::string_view payload) {
  DecodedEvent event;
  Field field, part;
  for (Fields fields(payload); fields.next(field);) {
    if (field.number == 1) event.wall_time = field.as_double();
    if (field.number == 2) event.step = field.as_integer();
    if (field.number == 3) event.file_version = field.as_bytes();
    if (field.number == 7) event.session_start = is_session_start(field.as_bytes());
    if (field.number != 5) continue;
    for (Fields parts(field.as_bytes()); parts.next(part);) {
      if (part.number == 1) event.values.push_back(decode_value(part.as_bytes()));
    }
  }
  return event;
}

bool decode_session(std::string_view plugin_content, DecodedSession& session) {
  bool found = false;
  Field field;
  for (Fields fields(plugin_content); fields.next(field);) {
    if (field.number == 3) decode_start(field.as_bytes(), session);
    if (field.number == 4) decode_end(field.as_bytes(), session);
    found |= field.number == 3 || field.number == 4;
  }
  return found;
}

}  // namespace sweep::tbwriter
