// Learning rates that make the engine of misbehaving_worker misbehave.
#pragma once

namespace sweep {

constexpr double kCrashes = 101, kHangs = 102, kDiverges = 103, kWantsMemory = 104, kBreaksItsDevice = 105,
                 kLeaves = 106, kCrashesOnce = 107, kWantsMemoryAndMustNotThrow = 108;
constexpr double kGoodRate = 0.02;           // the rate with which all of them train
constexpr long long kMisbehavesInStep = 27;  // with 10 steps per epoch
constexpr int kLastFinishedEpoch = 1;        // the last one before that step

}  // namespace sweep
