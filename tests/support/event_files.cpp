#include "tests/support/event_files.h"

#include "tbwriter/event_files.h"
#include "tbwriter/event_reader.h"
#include "tbwriter/record.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/data_files.h"

namespace sweep::tbwriter {

std::string to_hex(const std::string& bytes) {
  static const char* digits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text.push_back(digits[byte >> 4]);
    text.push_back(digits[byte & 15]);
  }
  return text;
}

std::string masked_crc_hex(const std::string& bytes) {
  return to_hex(test::little_endian(mask_crc(crc32c(bytes)), 4));
}

void spill(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

std::vector<proto::Event> read_events(const std::filesystem::path& file) {
  std::vector<proto::Event> events;
  EventReader reader(file);
  while (const auto payload = reader.next()) {
    events.emplace_back();
    EXPECT_TRUE(events.back().ParseFromArray(payload->data(), static_cast<int>(payload->size()))) << file;
  }
  EXPECT_EQ(reader.end(), ReadEnd::kEnd) << file << " " << describe(reader.end());
  EXPECT_EQ(reader.position(), std::filesystem::file_size(file)) << file;
  return events;
}

std::vector<proto::Event> read_run(const std::filesystem::path& directory) {
  std::vector<proto::Event> events;
  for (const std::string& name : list_event_files(directory)) {
    for (proto::Event& event : read_events(directory / name)) events.push_back(std::move(event));
  }
  return events;
}

proto::Event event_of(const AddToWriter& add) {
  const TemporaryDirectory directory;
  SummaryWriter writer(directory / "run", {.clock = [] { return 5.0; }});
  add(writer);
  writer.flush();
  EventReader reader(writer.path());
  std::string payload;
  while (const auto record = reader.next()) payload = *record;
  proto::Event event;
  EXPECT_TRUE(event.ParseFromString(payload));
  EXPECT_EQ(event.SerializeAsString(), payload);
  return event;
}

std::vector<proto::Summary::Value> values_of(const std::vector<proto::Event>& events,
                                             const std::string& tag) {
  std::vector<proto::Summary::Value> values;
  for_each_value(events, [&](const auto&, const auto& value) {
    if (value.tag() == tag) values.push_back(value);
  });
  return values;
}

std::vector<std::int64_t> steps_of(const std::vector<proto::Event>& events, const std::string& tag) {
  std::vector<std::int64_t> steps;
  for_each_value(events, [&](const auto& event, const auto& value) {
    if (value.tag() == tag) steps.push_back(event.step());
  });
  return steps;
}

std::set<std::string> tags_of(const std::vector<proto::Event>& events) {
  std::set<std::string> tags;
  for_each_value(events, [&](const auto&, const auto& value) { tags.insert(value.tag()); });
  return tags;
}

}  // namespace sweep::tbwriter
