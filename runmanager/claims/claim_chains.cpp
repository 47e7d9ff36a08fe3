#include "runmanager/claims/claim_chains.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/read_error.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnded = "ended ";

[[noreturn]] void throw_io(const fs::path& path, const char* problem, int error) {
  throw IoError(fmt::format("{}: {}: {}", path.string(), problem, std::strerror(error)));
}

std::string link_name(const std::string& name, int number) { return name + "." + std::to_string(number); }

// The file has as many names as it can have.
class TooManyLinks : public IoError {
 public:
  using IoError::IoError;
};

// Whether the link was made; false if there is another file of that name. Throws TooManyLinks.
bool make_link(const fs::path& from, const fs::path& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return true;
  const int error = errno;
  if (is_same_file(from, to)) return true;
  if (error == EEXIST) return false;
  if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS)
    throw IoError(fmt::format(
        "{}: this file system has no hard links, which several processes need to share a directory; "
        "use another --logdir, or start without --join",
        to.parent_path().string()));
  if (error == EMLINK) throw TooManyLinks(fmt::format("{}: cannot link: too many links", from.string()));
  throw_io(to, "cannot link", error);
}

// The text of a link; empty if it is not there.
std::optional<std::string> read_if_there(const fs::path& path) {
  try {
    return read_file(path);
  } catch (const ReadError&) {
    throw;
  } catch (const DataError&) {
    return std::nullopt;
  }
}

}  // namespace

bool owns(const Claim& claim) {
  const auto token = read_if_there(claim.owners / link_name(claim.name, claim.number));
  if (!token) return false;
  const auto owner = parse_process_identity(*token);
  return owner && owner->id == claim.id &&
         ::access((claim.owners / link_name(claim.name, claim.number + 1)).c_str(), F_OK) != 0;
}

ClaimChains::ClaimChains(fs::path folder, Member& member)
    : folder_(std::move(folder)),
      owners_(folder_ / "owners"),
      settled_(folder_ / "settled"),
      released_(folder_ / "released"),
      member_(member) {
  for (const fs::path& path : {owners_, settled_, released_}) {
    std::error_code error;
    fs::create_directories(path, error);
    if (error)
      throw IoError(fmt::format("{}: cannot make this directory: {}", path.string(), error.message()));
  }
}

fs::path ClaimChains::link_path(const std::string& name, int number) const {
  return owners_ / link_name(name, number);
}

void ClaimChains::refresh() {
  list(owners_, &Chain::number);
  list(settled_, &Chain::settled);
  list(released_, &Chain::released);
}

void ClaimChains::list(const fs::path& folder, int Chain::*number) {
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string file = it->path().filename().string();
    const std::size_t dot = file.rfind('.');
    int found = 0;
    if (dot == std::string::npos) continue;
    const auto [last, failed] = std::from_chars(file.data() + dot + 1, file.data() + file.size(), found);
    if (failed != std::errc() || last != file.data() + file.size()) continue;
    int& highest = chains_[file.substr(0, dot)].*number;
    highest = std::max(highest, found);
  }
  if (error) throw IoError(fmt::format("{}: cannot list: {}", folder.string(), error.message()));
  // Only what has ended is settled.
  for (auto& [name, chain] : chains_) chain.ended = std::max(chain.ended, chain.settled);
}

// Makes the link of that number. False if somebody else has it, which is then known.
bool ClaimChains::link(const fs::path& from, const std::string& name, int number) {
  Chain& chain = chains_[name];
  const bool made = make_link(from, link_path(name, number));
  chain.number = std::max(chain.number, number);
  return made;
}

bool ClaimChains::link_token(const std::string& name, int number) {
  try {
    return link(member_.token(), name, number);
  } catch (const TooManyLinks&) {
    member_.renew_token();
    return link(member_.token(), name, number);
  }
}

void ClaimChains::read_link(const std::string& name, Chain& chain) {
  if (chain.owner_number == chain.number) return;
  const auto text = read_if_there(link_path(name, chain.number));
  if (!text) return;
  chain.owner_number = chain.number;
  chain.owner.reset();
  if (text->starts_with(kEnded)) {
    chain.ended = chain.number;
  } else {
    chain.owner = parse_process_identity(*text);
  }
}

std::optional<Claim> ClaimChains::claim(const std::string& name, MemberWatch& watch) {
  if (member_.was_removed())
    throw IoError(
        fmt::format("{}: this process was stopped for so long that others took it for dead; start it again",
                    folder_.string()));
  Chain& chain = chains_[name];
  if (chain.number > 0 && chain.released < chain.number) {
    if (chain.ended == chain.number) return std::nullopt;
    read_link(name, chain);
    if (chain.ended == chain.number) return std::nullopt;
    // A link that cannot be read is what a power cut has left of one.
    if (chain.owner &&
        (chain.owner->id == member_.identity().id || watch.look_at(*chain.owner) != Life::kDead))
      return std::nullopt;
  }
  const int number = chain.number + 1;
  if (!link_token(name, number)) return std::nullopt;
  return Claim{.owners = owners_, .name = name, .number = number, .id = member_.identity().id};
}

std::optional<ProcessIdentity> ClaimChains::owner(const std::string& name) const {
  const auto chain = chains_.find(name);
  return chain == chains_.end() || chain->second.owner_number != chain->second.number ? std::nullopt
                                                                                      : chain->second.owner;
}

bool ClaimChains::end(const Claim& claim, std::string_view content) {
  const fs::path temporary = folder_ / (claim.attempt() + ".tmp");
  const std::string head = fmt::format("{}{}\n", kEnded, claim.attempt());
  const std::string_view parts[] = {head, content};
  std::error_code ignored;
  write_file_atomically(temporary, parts, Survives::kKill);
  bool made = false;
  try {
    made = link(temporary, claim.name, claim.number + 1);
  } catch (...) {
    fs::remove(temporary, ignored);
    throw;
  }
  fs::remove(temporary, ignored);
  if (!made) return false;
  chains_[claim.name].ended = claim.number + 1;
  return true;
}

void ClaimChains::settle(const std::string& name) {
  Chain& chain = chains_[name];
  chain.settled = chain.ended;
  mark(settled_, name, chain.ended);
}

bool ClaimChains::is_unsettled(const std::string& name) const {
  const auto found = chains_.find(name);
  return found != chains_.end() && found->second.ended > 0 && found->second.ended == found->second.number &&
         found->second.settled < found->second.ended;
}

void ClaimChains::release(const Claim& claim) {
  mark(released_, claim.name, claim.number);
  Chain& chain = chains_[claim.name];
  chain.released = std::max(chain.released, claim.number);
}

// An empty file. What it says is no more than a hint, except for a release, which only the owner writes.
void ClaimChains::mark(const fs::path& folder, const std::string& name, int number) const {
  try {
    const FileDescriptor file = open_output_file(folder / link_name(name, number), OutputMode::kAppend);
  } catch (const IoError&) {
  }
}

std::vector<std::string> ClaimChains::names() const {
  std::vector<std::string> names;
  for (const auto& [name, chain] : chains_) {
    if (chain.number > 0) names.push_back(name);
  }
  return names;
}

ChainState ClaimChains::state(const std::string& name) const {
  const auto found = chains_.find(name);
  if (found == chains_.end()) return ChainState::kFree;
  const Chain& chain = found->second;
  if (chain.number == 0 || chain.released == chain.number) return ChainState::kFree;
  return chain.ended == chain.number ? ChainState::kEnded : ChainState::kOwned;
}

std::optional<ChainEnd> ClaimChains::read_end(const std::string& name) const {
  const auto found = chains_.find(name);
  if (found == chains_.end() || found->second.ended == 0) return std::nullopt;
  std::optional<std::string> text = read_if_there(link_path(name, found->second.ended));
  if (!text || !text->starts_with(kEnded)) return std::nullopt;
  const std::size_t line_end = text->find('\n');
  if (line_end == std::string::npos) return std::nullopt;
  return ChainEnd{.attempt = text->substr(kEnded.size(), line_end - kEnded.size()),
                  .content = text->substr(line_end + 1)};
}

void ClaimChains::remove_temporaries() const {
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->path().extension() == ".tmp") fs::remove(it->path(), ignored);
  }
}

bool ClaimChains::reopen(const std::string& name) {
  const int number = chains_[name].number + 1;
  if (!link_token(name, number)) return false;
  release({.owners = owners_, .name = name, .number = number, .id = member_.identity().id});
  return true;
}

}  // namespace sweep
