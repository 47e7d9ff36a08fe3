#include "runmanager/claims/membership.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/block_signals.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/read_error.h"
#include "core/base/retry.h"
#include "core/base/start_thread.h"
#include "runmanager/claims/file_beat.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// What has a suffix is no token.
constexpr const char *kBeatSuffix = ".beat", *kNewTokenSuffix = ".new";

fs::path beat_file(const fs::path& folder, const std::string& id) { return folder / (id + kBeatSuffix); }

// Always of the same length, so that it can be written in place: "000000000017 joined  ".
std::string beat_text(std::uint64_t count, MemberState state) {
  return fmt::format("{:012} {}\n", count, state == MemberState::kJoined ? "joined  " : "starting");
}

MemberState state_of(std::string_view beat) {
  return beat.find("joined") != std::string_view::npos ? MemberState::kJoined : MemberState::kStarting;
}

// Not by a temporary file, which would stay if this process were killed. Nobody else uses the name.
void write_new_file(const fs::path& path, std::string_view text) {
  const FileDescriptor file = open_output_file(path, OutputMode::kNew);
  write_all(file.get(), text, path);
}

// Empty if the file is gone or cannot be read now. It is opened anew each time: only then does a network file
// system ask its server.
std::optional<std::string> read_unless_gone(const fs::path& path) {
  try {
    return read_file(path);
  } catch (const ReadError&) {
    return "";
  } catch (const DataError&) {
    return std::nullopt;
  }
}

}  // namespace

std::chrono::duration<double> lease() {
  constexpr double kDefault = 60;  // seconds
  const char* text = std::getenv("SWEEP_LEASE_SECONDS");
  if (text == nullptr) return std::chrono::duration<double>(kDefault);
  const double seconds = std::strtod(text, nullptr);
  return std::chrono::duration<double>(std::isfinite(seconds) && seconds > 0 ? seconds : kDefault);
}

Member::Member(fs::path folder, ProcessIdentity identity)
    : folder_(std::move(folder)), identity_(std::move(identity)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    throw IoError(fmt::format("{}: cannot make this directory: {}", folder_.string(), error.message()));
  // The beat first: who has a token and none has ended. Claims are links to the token, so it is synced.
  write_new_file(beat_file(folder_, identity_.id), beat_text(0, state_));
  write_token(token());
  const BlockSignals block;
  thread_ = start_thread("tells others that this sweep lives", [this] { loop(); });
}

Member::~Member() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_one();
  thread_.join();
  std::error_code ignored;
  fs::remove(beat_file(folder_, identity_.id), ignored);
  fs::remove(token(), ignored);
}

void Member::write_token(const fs::path& path) const {
  write_new_file(path, to_text(identity_));
  const fs::path synced[] = {path};
  sync_files(synced);
}

void Member::renew_token() {
  const fs::path renewed = token() += kNewTokenSuffix;
  std::error_code error;
  fs::remove(renewed, error);
  write_token(renewed);
  fs::rename(renewed, token(), error);
  if (error) throw IoError(fmt::format("{}: cannot be replaced: {}", token().string(), error.message()));
}

void Member::set_state(MemberState state) {
  const std::lock_guard lock(mutex_);
  state_ = state;
  beat();
}

// In place, not by a new file: one that others have removed must not come back.
void Member::beat() {
  const fs::path path = beat_file(folder_, identity_.id);
  const int fd = retry_interrupted([&] { return ::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC); });
  if (fd < 0) {
    if (errno == ENOENT) removed_ = true;
    return;  // For anything else the next beat may do.
  }
  const FileDescriptor file(fd);
  const std::string text = beat_text(++count_, state_);
  [[maybe_unused]] const auto written =
      retry_interrupted([&] { return ::pwrite(file.get(), text.data(), text.size(), 0); });
}

void Member::loop() {
  const std::chrono::duration<double> between = lease() / kBeatsPerLease;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait_for(lock, between, [this] { return closing_; });
    if (closing_) return;
    beat();
  }
}

bool has_beaten_lately(const fs::path& folder, const ProcessIdentity& member) {
  std::error_code error;
  const auto beaten = fs::last_write_time(beat_file(folder, member.id), error);
  return !error && fs::file_time_type::clock::now() - beaten < 3 * lease();
}

MemberWatch::MemberWatch(fs::path folder, ProcessIdentity here)
    : folder_(std::move(folder)), here_(std::move(here)) {}

Life MemberWatch::look_at(const ProcessIdentity& process) {
  if (has_certainly_ended(process, here_)) return Life::kDead;
  const std::optional<std::string> beat = read_unless_gone(beat_file(folder_, process.id));
  if (!beat) return Life::kDead;
  const Clock::time_point now = Clock::now();
  const auto [found, is_new] = sights_.try_emplace(process.id, Sight{*beat, now, now});
  Sight& sight = found->second;
  if (is_new) return Life::kUnseen;
  // Time in which this process was stopped itself, perhaps together with the other, proves nothing.
  if (now - sight.looked > lease() / 2) sight.changed = now;
  sight.looked = now;
  if (sight.beat != *beat) {
    sight.beat = *beat;
    sight.changed = now;
    sight.has_changed = true;
  }
  if (now - sight.changed > lease()) return Life::kDead;
  return sight.has_changed ? Life::kSeen : Life::kUnseen;
}

std::vector<OtherMember> MemberWatch::look_at_all() {
  std::vector<OtherMember> members;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const fs::path path = it->path();
    if (path.extension() != "") continue;
    const auto text = read_unless_gone(path);
    auto identity = text ? parse_process_identity(*text) : std::nullopt;
    if (!identity || identity->id == here_.id || identity->id != path.filename()) continue;
    OtherMember member{.identity = *std::move(identity)};
    if (const auto beat = read_unless_gone(beat_file(folder_, member.identity.id)))
      member.state = state_of(*beat);
    member.life = look_at(member.identity);
    members.push_back(std::move(member));
  }
  return members;
}

void MemberWatch::remove(const ProcessIdentity& dead) {
  std::error_code ignored;
  fs::remove(beat_file(folder_, dead.id), ignored);
  fs::remove(folder_ / (dead.id + kNewTokenSuffix), ignored);
  fs::remove(folder_ / dead.id, ignored);
}

}  // namespace sweep
