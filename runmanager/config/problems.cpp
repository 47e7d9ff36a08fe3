#include "runmanager/config/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.h"
#include "core/base/suggest.h"

namespace sweep {
namespace {

constexpr std::size_t kMaxMessages = 20;  // What fits on a screen; the rest is counted.

// Names that other programs use for our keys and that edit distance does not find.
constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kSynonyms = {{
    {"learning_rate", "lr"},
    {"learningrate", "lr"},
    {"lrs", "lr"},
    {"workers", "num_workers"},
    {"model", "network"},
    {"net", "network"},
    {"data", "dataset"},
    {"grid", "params"},
    {"parameters", "params"},
    {"axes", "params"},
    {"optim", "optimizer"},
    {"criterion", "loss"},
    {"random_seed", "seed"},
    {"repeat", "repeats"},
    {"num_epochs", "epochs"},
    {"filters", "out_channels"},
    {"units", "out_features"},
    {"beta", "betas"},
}};

std::string nearest_or_synonym(std::string_view wrong, std::span<const std::string> candidates) {
  for (const auto& [word, name] : kSynonyms) {
    if (word == wrong && std::ranges::find(candidates, name) != candidates.end()) return std::string(name);
  }
  return nearest_name(wrong, candidates);
}

}  // namespace

std::string suggestion(std::string_view wrong, std::span<const std::string> candidates) {
  return did_you_mean(nearest_or_synonym(wrong, candidates));
}

void Problems::insert(const std::string& source, std::size_t offset, std::string message) {
  if (!seen_.insert(message).second) return;
  auto found = std::ranges::find(sources_, source);
  if (found == sources_.end()) found = sources_.insert(sources_.end(), source);
  entries_.push_back({static_cast<std::size_t>(found - sources_.begin()), offset, std::move(message)});
}

void Problems::add(const JsonPlace& place, std::string_view text) {
  insert(place.source->name, place.offset(), fmt::format("{}: {}", to_string(place), text));
}

void Problems::add_value(const JsonView& value, std::string_view allowed, std::string_view nearest) {
  add(value, fmt::format("got {}, want {}{}", describe(value), allowed, did_you_mean(nearest)));
}

void Problems::add_unknown_key(const JsonView& value, std::span<const std::string> allowed) {
  const std::string names =
      allowed.empty() ? "nothing is allowed here" : fmt::format("allowed: {}", fmt::join(allowed, ", "));
  add(value.key_place(),
      fmt::format("unknown key {}, {}{}", in_quotes(value.key()), names, suggestion(value.key(), allowed)));
}

void Problems::add_message(std::string message) { insert("", entries_.size(), std::move(message)); }

void Problems::throw_if_any() const {
  if (entries_.empty()) return;
  std::vector<Entry> sorted = entries_;
  std::ranges::stable_sort(sorted, {},
                           [](const Entry& entry) { return std::pair(entry.source, entry.offset); });
  std::string text;
  for (std::size_t i = 0; i < sorted.size() && i < kMaxMessages; ++i) {
    text += (i > 0 ? "\n" : "") + sorted[i].message;
  }
  if (sorted.size() > kMaxMessages) text += fmt::format("\n… and {} more", sorted.size() - kMaxMessages);
  throw ConfigError(text);
}

}  // namespace sweep
