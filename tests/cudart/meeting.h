// Where the ranks of a group of stand-in devices meet: memory that threads and processes of this machine
// share.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace sweep::cuda::cudart {

/// One rank's end. Every function throws CommunicatorError.
class Meeting {
 public:
  /// `name`: what the ranks have in common, in characters of a file's name. `device`: the same for no other
  /// rank. Waits for all ranks; `deadline`: for each wait, in seconds.
  /// `check`: called while this rank waits, and may throw.
  Meeting(const std::string& name, int rank, int size, const std::string& device, double deadline,
          std::function<void()> check = {});
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Each rank's bytes [begins[rank], begins[rank + 1]) of `data` to all. Throws on all ranks if `begins` are
  /// not the same.
  void all_gather(std::byte* data, std::span<const std::size_t> begins);

  /// Waits for all ranks to leave, as long as NCCL's caller does.
  void leave() noexcept;

 private:
  struct Shared;
  struct Mapping;

  void join(const std::string& device);
  void arrive();
  void compare(std::span<const std::size_t> begins) const;

  const std::string name_;
  const int rank_, size_;
  const double deadline_;
  const std::function<void()> check_;
  std::unique_ptr<Mapping> mapping_;
  Shared& shared_;
};

}  // namespace sweep::cuda::cudart
