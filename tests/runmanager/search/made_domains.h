// Domains that several tests search, and what is found there.
#pragma once

#include "runmanager/search/decisions.h"
#include "runmanager/search/sampler.h"
#include "tests/support/test.h"

namespace sweep::test {

/// Real numbers from 0 to 1.
inline SearchDomain unit_cube(std::size_t dimensions) {
  return {.dimensions =
              std::vector<Dimension>(dimensions, {.kind = DimensionKind::kUniform, .low = 0, .high = 1})};
}

/// A dimension of every kind, two of them conditional, one of these on the other, and a rule.
inline SearchDomain domain_of_all_kinds() {
  using enum DimensionKind;
  SearchDomain domain{.dimensions = {{.kind = kUniform, .low = -1, .high = 2},
                                     {.kind = kLogUniform, .low = 1e-5, .high = 0.1},
                                     {.kind = kInteger, .low = -3, .high = 12},
                                     {.kind = kLogInteger, .low = 4, .high = 1000},
                                     {.kind = kChoice, .choices = 3},
                                     {.kind = kChoice, .choices = 5, .ordered = true}}};
  // Dimension 2 exists with choice 1, dimension 3 with a dimension 2 above 0.
  domain.is_active = [](const SearchPoint& point, std::size_t d) {
    if (d == 2) return point[4] == 1.0;
    if (d == 3) return point[2] && *point[2] > 0;
    return true;
  };
  domain.is_allowed = [](const SearchPoint& point) { return point[4] != 2.0 || *point[5] > 1; };
  return domain;
}

/// Expects the conditions and rules of domain_of_all_kinds(), and values that are within the ends and
/// rounded.
inline void expect_point_of(const SearchDomain& domain, const SearchPoint& point) {
  EXPECT_TRUE(domain.is_allowed(point));
  for (std::size_t d = 0; d < point.size(); ++d) {
    const Dimension& dimension = domain.dimensions[d];
    EXPECT_EQ(point[d].has_value(), domain.is_active(point, d)) << d;
    if (!point[d]) continue;
    const bool is_choice = dimension.kind == DimensionKind::kChoice;
    EXPECT_GE(*point[d], is_choice ? 0 : dimension.low) << d;
    EXPECT_LE(*point[d], is_choice ? static_cast<double>(dimension.choices) - 1 : dimension.high) << d;
    EXPECT_EQ(*point[d], rounded(dimension, *point[d])) << d;
  }
}

/// 3 × 4 values, but those of the second dimension only with the first one's value 0, and not value 2: 3 + 2
/// points.
inline SearchDomain domain_of_five_points() {
  SearchDomain domain{.dimensions = {{.kind = DimensionKind::kChoice, .choices = 3},
                                     {.kind = DimensionKind::kInteger, .low = 1, .high = 4}}};
  domain.is_active = [](const SearchPoint& point, std::size_t d) { return d == 0 || point[0] == 0.0; };
  domain.is_allowed = [](const SearchPoint& point) { return point[1] != 2.0; };
  return domain;
}

/// The first trials that `sampler` proposes, up to `count`: each is observe(its number, its point).
inline std::vector<Observation> trials_of(const Sampler& sampler, std::size_t count, const auto& observe) {
  std::vector<Observation> trials;
  while (trials.size() < count) {
    const auto point = sampler.suggest(trials.size(), trials);
    if (!point) break;
    trials.push_back(observe(trials.size(), *point));
  }
  return trials;
}

/// The values of trials that are known after an epoch.
class MadeResults {
 public:
  MadeResults() = default;
  /// "1: 5 . x | 2: 3": after epoch 1 trial 0 has 5, trial 1 is not known, trial 2 has failed.
  MadeResults(const char* text) {
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, '|');) {
      std::istringstream words(part);
      int epoch = 0;
      char colon = 0;
      words >> epoch >> colon;
      std::size_t trial = 0;
      for (std::string word; words >> word; ++trial)
        if (word != ".") set(epoch, trial, word == "x" ? std::nullopt : std::optional(std::stod(word)));
    }
  }
  void set(int epoch, std::size_t trial, std::optional<double> value) { values_[{trial, epoch}] = value; }

  KnownResult operator()(std::size_t trial, int epoch) const {
    const auto found = values_.find({trial, epoch});
    if (found == values_.end()) return {};
    return {.is_known = true, .value = found->second};
  }

 private:
  std::map<std::pair<std::size_t, int>, std::optional<double>> values_;
};

/// "2 2! 4, 1@2": how far the trials are trained, "!" of those that have left, and of which trials and after
/// which epochs others are copies.
inline std::string text_of(const SearchState& state) {
  std::string text;
  for (std::size_t i = 0; i < state.until.size(); ++i)
    text += (i > 0 ? " " : "") + std::to_string(state.until[i]) + (state.ended[i].empty() ? "" : "!");
  for (const PopulationCopy& copy : state.copies)
    text += ", " + std::to_string(copy.parent) + "@" + std::to_string(copy.epoch);
  return text;
}

/// A target that no result reaches.
inline bool no_target(double) { return false; }

}  // namespace sweep::test
