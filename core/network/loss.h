// Loss functions by PyTorch's names and arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/network/arguments.h"

namespace sweep {

/// Every loss that the engines implement, with its arguments, in the order of LossOptions::Kind. The first is
/// the default.
std::span<const NamedType> loss_types();

/// torch.nn.CrossEntropyLoss of classes; and, of numbers, MSELoss, L1Loss, SmoothL1Loss and
/// BCEWithLogitsLoss, averaged over batch and outputs. Where the targets are classes, these four take one-hot
/// numbers; and bce_with_logits of two classes may have one output instead, whose target is the class.
///
/// With label smoothing s the target of cross_entropy is (1 − s) of the label and s spread over all classes.
/// With class weights its mean over a batch is divided by the sum of the labels' weights, as in PyTorch; a
/// batch of weight 0 has loss 0 and gradient 0 in training.
struct LossOptions {
  enum class Kind { kCrossEntropy, kMse, kL1, kSmoothL1, kBceWithLogits } kind = Kind::kCrossEntropy;
  double label_smoothing = 0;             // of cross_entropy, in [0, 1]
  std::vector<float> class_weights = {};  // of cross_entropy, >= 0, not all 0; empty: all 1
  double beta = 1;                        // of smooth_l1, >= 0: errors below it count as squares
  friend bool operator==(const LossOptions&, const LossOptions&) = default;
};

/// Whether the outputs may be compared with numbers; all losses can with classes.
bool accepts_regression(LossOptions::Kind kind);

/// Min number of outputs that the loss needs for samples of `classes` classes. More are allowed, except if it
/// is 1.
std::size_t least_outputs(LossOptions::Kind kind, std::size_t classes);

/// For classifiers with many classes it is also counted how often the label is among the largest outputs:
/// this many. With few classes that would say little.
inline constexpr int kTopClasses = 5;
constexpr bool counts_top(std::size_t outputs) { return outputs > 2 * kTopClasses; }

/// Sums over the samples that were trained or evaluated since the last Engine::take_totals().
struct Totals {
  double loss = 0;           // sum of the samples' losses; not finite if one of them is not
  std::int64_t correct = 0;  // samples of classes whose first largest output is the label's
  std::int64_t samples = 0;
  // If there are more than kTopClasses · 2 classes: how many samples there were, and how many of them have
  // the label's output among the kTopClasses largest.
  std::int64_t ranked = 0, in_top = 0;
  // Targets that are numbers: how many there were, and the sums of |prediction − target| and of its square.
  // The prediction is the output, or its sigmoid with bce_with_logits.
  std::int64_t numbers = 0;
  double absolute_error = 0, squared_error = 0;

  Totals& operator+=(const Totals& more) {
    loss += more.loss;
    correct += more.correct;
    samples += more.samples;
    ranked += more.ranked;
    in_top += more.in_top;
    numbers += more.numbers;
    absolute_error += more.absolute_error;
    squared_error += more.squared_error;
    return *this;
  }
};

/// Returns the loss of a type from loss_types(), with defaults for what is not `given`. Throws ConfigError
/// for an unknown type or argument, or one that is out of range.
LossOptions make_loss(std::string_view type, const Arguments& given = {});

/// Returns the type of a loss, and its arguments.
const NamedType& type_of(const LossOptions& loss);
Arguments arguments_of(const LossOptions& loss);

}  // namespace sweep
