// The instruction set that the CPU kernels use on this machine.
#pragma once

#include <cstddef>
#include <string>

namespace sweep {

/// Highway's name of the target chosen at run time: "AVX3" (AVX-512), "AVX2", "SSE2",
/// "NEON", … Thread-safe, as the others.
std::string simd_target_name();

/// Its place in the tables of kernels. Not inline: Highway counts the targets that a source is compiled for.
std::size_t simd_target_index();

/// Highway's version: "1.0.3".
std::string simd_library_version();

}  // namespace sweep
