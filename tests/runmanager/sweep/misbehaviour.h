// Learning rates that make the engine of misbehaving_worker misbehave.
#pragma once

namespace sweep {

constexpr double kCrashes = 101, kHangs = 102, kDiverges = 103, kWantsMemory = 104, kBreaksItsDevice = 105,
                 kLeaves = 106, kCrashesOnce = 107, kWantsMemoryAndMustNotThrow = 108;
constexpr double kGoodRate = 0.02;           // what they all train with until then
constexpr long long kMisbehavesInStep = 27;  // of 10 per epoch
constexpr int kLastFinishedEpoch = 1;        // before that

}  // namespace sweep
