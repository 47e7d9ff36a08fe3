#include "core/parallel/communicator.h"

#include <array>
#include <new>
#include <vector>

namespace sweep {

void on_all_ranks(Communicator& group, const std::function<void()>& work) {
  if (group.shares_memory()) {
    work();
    return group.barrier();
  }
  using Problem = std::array<char, 1024>;  // ends with '\0'; empty: none
  const auto size = static_cast<std::size_t>(group.size());
  std::vector<Problem> problems(size);
  try {
    work();
  } catch (const CommunicatorError&) {
    throw;
  } catch (const std::exception& error) {
    Problem& own = problems[static_cast<std::size_t>(group.rank())];
    const std::string reason = reason_of(error);
    reason.copy(own.data(), own.size() - 1);
    if (reason.empty()) own[0] = '?';
  }
  std::vector<std::size_t> begins;
  for (std::size_t rank = 0; rank <= size; ++rank) begins.push_back(rank * sizeof(Problem));
  const SharedArray array{bytes_of(std::span(problems)).data(), begins};
  group.all_gather({&array, 1});
  for (std::size_t rank = 0; rank < size; ++rank) {
    if (problems[rank][0] != '\0')
      throw ReplicaError("rank " + std::to_string(rank) + ": " + problems[rank].data());
  }
}

std::string reason_of(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? "out of memory" : error.what();
}

}  // namespace sweep
