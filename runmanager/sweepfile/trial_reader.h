// From the points that a search draws to the runs of its trials.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runmanager/config/problems.h"
#include "runmanager/config/run_config.h"
#include "runmanager/sweepfile/combination_reader.h"
#include "runmanager/sweepfile/space.h"
#include "runmanager/sweepfile/swept_values.h"

namespace sweep {

/// Not thread-safe.
class TrialReader {
 public:
  /// `space` has one grid; `rule_base` is the file, whose plain values conditions may test. The others are as
  /// CombinationReader has them.
  TrialReader(const SearchSpace& space, const JsonView& rule_base, JsonDocument tree,
              std::vector<Assignment> plain, NetworkFiles files, ReadContext context);
  TrialReader(const TrialReader&) = delete;
  TrialReader& operator=(const TrialReader&) = delete;

  /// Reports ends of ranges that the keys do not allow.
  void check_ranges(Problems& problems) const;

  SearchDomain domain() const { return Space::domain_of(space_); }
  std::vector<std::string> keys() const;

  /// The run `index` of the sweep, at `point`. Has to be called for one after the other, as names depend on
  /// those before; for the last one it may be called again. Throws ConfigError with every mistake.
  RunConfig read(std::size_t index, const SearchPoint& point, int repeat = 0);
  /// Trainings of each point.
  int repeats() const { return space_->repeats(); }

 private:
  Combination combination_of(const SearchPoint& point);

  std::shared_ptr<const Space> space_;
  std::shared_ptr<std::vector<Axis>> axes_;  // ranges with the values that were drawn
  std::shared_ptr<CombinationReader> reader_;
  SweptValues swept_;
  std::map<std::string, std::size_t> trials_;  // by their names in lower case
};

/// Draws the points that can be chosen without results, and reads their runs into `sweep`, with its keys and
/// its TrialSource. `epochs`: of a trial. Throws ConfigError.
void draw_trials(const std::shared_ptr<TrialReader>& reader, const SearchSpec& search, int epochs,
                 Sweep& sweep);

}  // namespace sweep
