// Names of event files: TensorBoard reads a run's files in the order of their names, each one only once it is
// newest.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sweep::tbwriter {

/// Names of the event files that lie directly in `directory`, as TensorBoard sees them (every name that
/// contains "tfevents"), in its order. Empty if there is no such directory. Throws IoError if it cannot be
/// read.
std::vector<std::string> list_event_files(const std::filesystem::path& directory);

/// What is common to the names of one session: seconds, padded so that they sort as text, host and process.
struct SessionName {
  std::int64_t seconds = 0;
  std::string host;
  std::int64_t process = 0;
};

/// A session for this process, later in order than every one that `existing` names, even if the clock went
/// back. `now` is in seconds since 1970. Throws IoError if an existing name leaves no room for a later one.
SessionName next_session(const std::vector<std::string>& existing, double now);

/// "events.out.tfevents.1700000000.host.123.000000"; `counter` numbers the files of a session.
std::string event_file_name(const SessionName& session, unsigned counter);

}  // namespace sweep::tbwriter
