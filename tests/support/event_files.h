// Bytes, and events parsed by the generated classes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "proto/tensorboard/event.pb.h"
#include "tests/support/temporary_directory.h"

namespace sweep::tbwriter {

using test::TemporaryDirectory;

std::string from_hex(const std::string& text);
std::string to_hex(const std::string& bytes);
std::string masked_crc_hex(const std::string& bytes);  // as it lies in a file

std::string slurp(const std::filesystem::path& file);
void spill(const std::filesystem::path& file, const std::string& bytes);

/// Every event of a file, parsed by the generated classes. Fails the test if anything of the file is not a
/// whole event.
std::vector<proto::Event> read_events(const std::filesystem::path& file);

/// The same for all event files of a directory, in their order.
std::vector<proto::Event> read_run(const std::filesystem::path& directory);

/// The values that the events hold for a tag.
std::vector<proto::Summary::Value> values_of(const std::vector<proto::Event>& events, const std::string& tag);

}  // namespace sweep::tbwriter
