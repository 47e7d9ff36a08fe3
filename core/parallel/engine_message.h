// A network and its engine's options as bytes, for the ranks in other processes. Not part of the installed
// interface.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/engine/engine.h"

namespace sweep {

struct SentEngine {
  Network network;
  EngineOptions options;
};

/// Between processes of one program on machines of one kind only: numbers are in the order of this machine.
std::vector<std::byte> encode_engine(const Network& network, const EngineOptions& options);
/// Throws DataError if `bytes` was not made by encode_engine().
SentEngine decode_engine(std::span<const std::byte> bytes);

}  // namespace sweep
