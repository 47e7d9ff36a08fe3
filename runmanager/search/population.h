// Population based training: the worse members of a population go on as changed copies of the better ones.
#pragma once

#include <cstddef>

#include "runmanager/search/search_space.h"
#include "runmanager/search/search_state.h"
#include "runmanager/search/unit_random.h"

namespace sweep {

/// The algorithm of Jaderberg et al., "Population Based Training of Neural Networks" (2017), with truncation
/// selection. After every `interval` epochs all members are ranked. The worst one in `reduction`, at least
/// one, leave the population, and for each a new trial begins as a copy: the last member's of the best one,
/// that before it of the second, and so on. What is decided after an epoch depends on the results after that
/// epoch alone.
struct Population {
  std::size_t members = 1;
  int interval = 1, epochs = 1;  // `epochs`: of a whole training
  std::size_t reduction = 2;     // >= 2

  /// Makes all decisions that known results allow, for `trials` trials. A member goes on only when the copies
  /// of its generation are among them: until then its state stays for them. Those that reach the target go on
  /// to the end.
  SearchState play(std::size_t trials, const ResultOfTrial& result,
                   const ReachesTarget& reaches_target) const;

  /// How many trials there are in all, unless no member of a generation has a result.
  std::size_t total() const;
};

/// The point of a copy: each number times 0.8 or 1.2, each choice of an order replaced by a neighbour, and
/// one value in four, as choices without order always, drawn anew.
SearchPoint explored_point(const SearchDomain& domain, const SearchPoint& parent, UnitRandom& random);

}  // namespace sweep
