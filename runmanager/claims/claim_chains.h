// Divides work over several processes: claims by link(2), which is atomic on network file systems, too.
//
// Each thing has a chain of files, owners/NAME.1, owners/NAME.2, …; the one with the highest number counts. A
// claim is a link to the token of the process that made it. Who finds the process dead, or the claim
// released, links the next number: of several that try, one succeeds. The end of a thing is the next link of
// the same chain: a file with what has become of it. So of an owner that finishes and another that takes the
// thing from it, exactly one succeeds, whatever either believes of the other. Numbers only grow and links are
// never removed, so a process that slept through any number of owners finds the next number taken.
//
// A link(2) over a network may succeed and be reported as failed, because the answer was lost and the request
// repeated. So the file that is there then is compared with the one that was to be linked.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runmanager/claims/membership.h"

namespace sweep {

/// A claim that was made. It counts while owns() is true.
struct Claim {
  std::filesystem::path owners;  // the folder of the chain
  std::string name;
  int number = 0;
  std::string id;  // ProcessIdentity::id of the owner

  /// "3f2a9c01d2e4b6a8-2": no other claim of any process has this.
  std::string attempt() const { return id + "-" + std::to_string(number); }
};

/// Whether nobody has taken over since. Asks the file system; a network file system may be late by the time
/// that it keeps directories for (a minute at most), so nothing may depend on "true" but the wish not to work
/// in vain. Thread-safe, and may be called by any process.
bool owns(const Claim& claim);

enum class ChainState { kFree, kOwned, kEnded };

struct ChainEnd {
  std::string attempt;  // Claim::attempt() of who ended it
  std::string content;
};

/// The chains in a folder, as this process knows them. Not thread-safe.
class ClaimChains {
 public:
  /// Makes the folder. `member` must outlive this object. Throws IoError.
  ClaimChains(std::filesystem::path folder, Member& member);

  /// Reads the names of all links. Throws IoError.
  void refresh();

  /// Makes a claim if the thing is free: not claimed, released, or its owner is dead. Uses what is known from
  /// the last refresh(). Throws IoError if links cannot be made here, or if this process was_removed().
  std::optional<Claim> claim(const std::string& name, MemberWatch& watch);
  /// The owner, where claim() found one that may live. Empty where that is not known.
  std::optional<ProcessIdentity> owner(const std::string& name) const;

  /// Ends the thing. Returns false if somebody has taken over: what this process made of it does not count.
  /// settle() follows once everything is done that belongs to the end.
  bool end(const Claim& claim, std::string_view content);
  /// Tells the others that nothing is left to be done for the ended thing.
  void settle(const std::string& name);
  /// Whether it has ended and nobody has settled it: its owner is about to, or has died over it.
  bool is_unsettled(const std::string& name) const;
  /// Lets others claim the thing at once. Errors are ignored: they will find out.
  void release(const Claim& claim);

  /// All things that have a chain, by name.
  std::vector<std::string> names() const;
  /// Reads the newest link of the chain: who owns the thing, or that it has ended.
  void look_at(const std::string& name) { read_link(name, chains_[name]); }
  /// As of the last refresh(), look_at() and claim().
  ChainState state(const std::string& name) const;
  /// Content of an ended chain; empty if the file is damaged, as after a power cut.
  std::optional<ChainEnd> read_end(const std::string& name) const;
  /// Removes what killed processes have left that were about to end something. For when no other process
  /// does.
  void remove_temporaries() const;
  /// Puts an ended thing back to the free ones. Returns false if somebody else was faster.
  bool reopen(const std::string& name);

 private:
  struct Chain {
    int number = 0;  // the highest
    int ended = 0, settled = 0, released = 0;
    std::optional<ProcessIdentity> owner;
    int owner_number = 0;  // the link that `owner` was read from
  };
  std::filesystem::path link_path(const std::string& name, int number) const;
  bool link(const std::filesystem::path& from, const std::string& name, int number);
  bool link_token(const std::string& name, int number);
  void read_link(const std::string& name, Chain& chain);
  void list(const std::filesystem::path& folder, int Chain::*number);
  void mark(const std::filesystem::path& folder, const std::string& name, int number) const;

  const std::filesystem::path folder_, owners_, settled_, released_;
  Member& member_;
  std::map<std::string, Chain> chains_;
};

}  // namespace sweep
