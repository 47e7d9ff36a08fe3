// Names of event files. TensorBoard reads a run's files in the order of their names, and moves on for good
// once a later one exists, so new names must always sort last.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sweep::tbwriter {

/// Names of the event files in `directory`, sorted: like TensorBoard, every name that contains "tfevents".
/// Empty if there is no such directory. Throws IoError if it cannot be read.
std::vector<std::string> list_event_files(const std::filesystem::path& directory);

/// The part of the names that the files of one session share.
struct SessionName {
  std::int64_t seconds = 0;  // since 1970; ten digits in names, so that they sort as text
  std::string host;
  std::int64_t process = 0;
};

/// Returns a session of this process whose names sort after all of `existing`, even if the clock was set
/// back. `now` is in seconds since 1970. Throws IoError if no name can sort after an existing one.
SessionName next_session(const std::vector<std::string>& existing, double now);

/// "events.out.tfevents.1700000000.host.123.000000"; `counter` numbers the files of a session.
std::string event_file_name(const SessionName& session, unsigned counter);

}  // namespace sweep::tbwriter
