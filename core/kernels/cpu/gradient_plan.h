// Where the gradients of a network's values lie during the backward pass: a few slots that values share, each
// from the first op that writes its gradient to the op that made the value.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sweep::cpu {

inline constexpr std::size_t kNoSlot = static_cast<std::size_t>(-1);
inline constexpr std::size_t kNoShortcut = static_cast<std::size_t>(-2);

/// One op in computing order. Values are named by the op that makes them; kNetworkInput is the network's
/// input.
struct PlannedOp {
  std::size_t in;
  std::size_t shortcut = kNoShortcut;  // the second input of a sum
  bool has_parameters = false;
  std::size_t out_floats = 0;  // of its output's gradient
};

/// What an op does with the gradient of one of its inputs.
struct GradientEdge {
  enum class Action {
    kNone,   // nobody needs it
    kWrite,  // into `slot`
    kAdd,    // to what another op left in `slot`
    kAlias,  // a sum's gradient is that of its input: `slot` is the op's own grad_out
  } action = Action::kNone;
  std::size_t slot = kNoSlot;
};

struct PlannedGradients {
  std::size_t grad_out = kNoSlot;  // kNoSlot: the op has no backward work
  std::size_t scratch = kNoSlot;   // where an op that is no sum writes what is then added
  GradientEdge in, shortcut;
};

struct GradientPlan {
  std::vector<PlannedGradients> ops;
  std::vector<std::size_t> slot_floats;  // of each slot
};

/// The last op makes the network's output, whose gradient is given.
GradientPlan plan_gradients(std::span<const PlannedOp> ops);

}  // namespace sweep::cpu
