// Event files as tests read them: whole files, and events parsed by the classes that protoc generates.
#pragma once

#include "proto/tensorboard/event.pb.h"
#include "tests/support/test.h"

namespace sweep::tbwriter {

class SummaryWriter;

using test::from_hex;
/// Bytes as two hexadecimal digits each.
std::string to_hex(const std::string& bytes);
/// The masked CRC-32C of `bytes` as an event file stores it, little-endian.
std::string masked_crc_hex(const std::string& bytes);

/// Replaces the content of a file.
void spill(const std::filesystem::path& file, const std::string& bytes);

/// Every event of a file. Fails the test unless the file consists of whole events.
std::vector<proto::Event> read_events(const std::filesystem::path& file);

/// The events of all event files of a directory, in the order of the files.
std::vector<proto::Event> read_run(const std::filesystem::path& directory);

/// The last event that `add` makes a writer write whose clock says 5. Fails the test unless the event has the
/// bytes that protobuf would have written.
using AddToWriter = std::function<void(SummaryWriter&)>;
proto::Event event_of(const AddToWriter& add);

/// Calls use(event, value) for every value of the events, in their order.
template <class Use>
void for_each_value(const std::vector<proto::Event>& events, const Use& use) {
  for (const proto::Event& event : events) {
    for (const auto& value : event.summary().value()) use(event, value);
  }
}

/// The values that the events hold for a tag.
std::vector<proto::Summary::Value> values_of(const std::vector<proto::Event>& events, const std::string& tag);
/// The steps of these values, and the tags that there are.
std::vector<std::int64_t> steps_of(const std::vector<proto::Event>& events, const std::string& tag);
std::set<std::string> tags_of(const std::vector<proto::Event>& events);

}  // namespace sweep::tbwriter
