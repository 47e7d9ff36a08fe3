// What the stages of a network work on at the same time: parts of a batch, and pieces of them.
//
// A part is what has a gradient of its own, see GradientParts; with one device, or set of devices, and
// without turns that is the whole batch. A piece is some of a part's samples, which go through the stages
// together; different stages work on different pieces.
#pragma once

#include <cstddef>
#include <vector>

#include "core/kernels/cuda/gradient_parts.h"

namespace sweep::cuda {

/// How a batch is divided over devices and pieces.
struct RoundOptions {
  GradientParts parts = {};
  bool together = false;   // whether all of the set's parts of a turn are in one round; else one part is
  std::size_t pieces = 1;  // of a part, at most
  std::size_t unit = 1;    // every piece of a part but the last has a multiple of so many samples
};

struct StageRound {
  struct Part {
    int number = 0;       // among GradientParts::count
    SampleRange samples;  // of the batch; they may be none
    std::size_t fed = 0;  // place of the first among the samples that this set of devices is fed
    std::size_t pieces = 0;
    int size() const { return static_cast<int>(samples.size()); }
  };
  /// Samples [begin, end) of a part that has samples.
  struct Piece {
    std::size_t part = 0;  // of `parts`
    int begin = 0, end = 0;
  };

  std::vector<Part> parts;    // in their order
  std::vector<Piece> pieces;  // of all of them, in their order
  PartSizes sizes;            // of all parts of the turn, whoever computes them
  bool adds = false;          // whether gradients are added to those of earlier turns

  bool is_whole(const Piece& piece) const {
    return piece.begin == 0 && piece.end == parts[piece.part].size();
  }
  /// Whether it is the last one of its part.
  bool is_last(const Piece& piece) const { return piece.end == parts[piece.part].size(); }
};

/// The rounds in which a batch of `samples` is trained, one after another.
std::vector<StageRound> training_rounds(std::size_t samples, const RoundOptions& options);

/// The round in which `samples` are evaluated, as one part, where the set's first part is.
StageRound evaluation_round(std::size_t samples, const RoundOptions& options);

}  // namespace sweep::cuda
