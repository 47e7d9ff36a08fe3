// What every Communicator promises, as a function that each rank of a group calls.
#pragma once

#include "core/parallel/communicator.h"
#include "tests/support/test.h"

namespace sweep::test {

/// Returns what is broken, or "".
inline std::string broken_contract(Communicator& group) {
  const auto size = static_cast<std::size_t>(group.size()), rank = static_cast<std::size_t>(group.rank());
  const auto begins_of = [&](std::size_t unit, std::size_t skipped) {
    // Rank r has r + 1 units, but for one rank that has none.
    std::vector<std::size_t> begins{0};
    for (std::size_t r = 0; r < size; ++r)
      begins.push_back(begins.back() + (r == skipped && size > 1 ? 0 : r + 1) * unit);
    return begins;
  };
  const auto value_of = [](std::size_t owner, std::size_t i, std::size_t round) {
    return static_cast<std::uint32_t>(owner * 1000003 + i * 31 + round * 7);
  };
  for (std::size_t round = 0; round < 50; ++round) {
    // Small and large messages, two arrays at once.
    const auto begins = begins_of(sizeof(std::uint32_t), round % size);
    const auto large_begins = begins_of(sizeof(std::uint32_t) * 30011, (round + 1) % size);
    std::vector<std::uint32_t> small(begins.back() / 4, 1), large(large_begins.back() / 4, 1);
    const auto fill = [&](std::vector<std::uint32_t>& values, const std::vector<std::size_t>& array_begins) {
      for (std::size_t i = array_begins[rank] / 4; i < array_begins[rank + 1] / 4; ++i)
        values[i] = value_of(rank, i, round);
    };
    fill(small, begins);
    fill(large, large_begins);
    const std::vector<SharedArray> arrays{{std::as_writable_bytes(std::span(small)).data(), begins},
                                          {std::as_writable_bytes(std::span(large)).data(), large_begins}};
    group.all_gather(arrays);
    for (std::size_t owner = 0; owner < size; ++owner) {
      for (std::size_t i = begins[owner] / 4; i < begins[owner + 1] / 4; ++i)
        if (small[i] != value_of(owner, i, round)) return "all_gather of few bytes";
      for (std::size_t i = large_begins[owner] / 4; i < large_begins[owner + 1] / 4; ++i)
        if (large[i] != value_of(owner, i, round)) return "all_gather of many bytes";
    }

    std::vector<std::uint32_t> told(round * 997, static_cast<std::uint32_t>(rank == 0 ? round : 77));
    group.broadcast(std::as_writable_bytes(std::span(told)));
    for (const std::uint32_t value : told)
      if (value != round) return "broadcast";

    std::vector<std::uint32_t> parts(large.size(), 5);
    if (rank == 0) std::iota(parts.begin(), parts.end(), static_cast<std::uint32_t>(round));
    group.scatter({std::as_writable_bytes(std::span(parts)).data(), large_begins});
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool own = i >= large_begins[rank] / 4 && i < large_begins[rank + 1] / 4;
      if (own && parts[i] != i + round) return "scatter: a rank's own part";
      if (!own && rank > 0 && parts[i] != 5) return "scatter: another rank's part";
    }
    group.barrier();
  }
  return "";
}

}  // namespace sweep::test
