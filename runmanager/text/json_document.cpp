#include "runmanager/text/json_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/suggest.h"
#include "core/network/arguments.h"

namespace sweep {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kMaxMessages = 20;  // What fits on a screen; the rest is counted.

// Names that other programs use for our keys and that edit distance does not find.
constexpr std::array<std::pair<std::string_view, std::string_view>, 24> kSynonyms = {{
    {"learning_rate", "lr"},
    {"learningrate", "lr"},
    {"init_lr", "lr"},
    {"initial_lr", "lr"},
    {"workers", "num_workers"},
    {"model", "network"},
    {"grid", "params"},
    {"parameters", "params"},
    {"hyperparameters", "params"},
    {"axes", "params"},
    {"criterion", "loss"},
    {"random_seed", "seed"},
    {"num_epochs", "epochs"},
    {"max_epochs", "epochs"},
    {"lr_scheduler", "schedule"},
    {"early_stopping", "stop"},
    {"filters", "out_channels"},
    {"units", "out_features"},
    {"rate", "p"},
    {"weight", "class_weights"},
    {"image_size", "resize"},
    {"transform", "augment"},
    {"monitor", "metric"},
    {"direction", "mode"},
}};

}  // namespace

std::string joined(const KeyPath& path) { return fmt::format("{}", fmt::join(path, ".")); }

std::size_t JsonPlace::offset() const {
  if (!has_lines()) return 0;
  // A part that was added is where the value is that has it.
  KeyPath known = path;
  auto found = source->offsets.find(known);
  for (; found == source->offsets.end(); found = source->offsets.find(known)) known.pop_back();
  return is_key ? found->second.key : found->second.value;
}

std::string JsonPlace::line_and_column() const {
  return has_lines() ? sweep::line_and_column(source->text, offset()) : "";
}

JsonPlace JsonPlace::whole() const {
  JsonPlace place = *this;
  place.is_whole = true;
  return place;
}

std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::string_view line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0.
  // Continuation bytes of UTF-8 take no column.
  const auto characters =
      std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; });
  return fmt::format("{}:{}", 1 + std::ranges::count(before, '\n'), 1 + characters);
}

std::string to_string(const JsonPlace& place) {
  std::string text = place.source->name;
  if (place.has_lines()) text += ":" + place.line_and_column();
  constexpr std::size_t kMaxShownPath = 200;  // bytes; one of layers in layers is long
  if (!place.path.empty()) text += ": " + shown_text(joined(place.path), kMaxShownPath);
  return text;
}

JsonDocument::JsonDocument(const JsonView& value) { set(json, {}, value); }

JsonPlace JsonDocument::place(const KeyPath& path) const {
  // The place of the nearest value above that has one.
  KeyPath above = path;
  auto found = places_.find(above);
  for (; found == places_.end(); found = places_.find(above)) above.pop_back();
  JsonPlace place = found->second;
  if (above.size() < path.size() && !place.is_whole) {
    place.path.insert(place.path.end(), path.begin() + static_cast<std::ptrdiff_t>(above.size()), path.end());
    place.is_key = false;
  }
  return place;
}

void JsonDocument::set_place(const KeyPath& path, JsonPlace place) {
  const auto is_below = [&path](const KeyPath& other) {
    return other.size() >= path.size() && std::equal(path.begin(), path.end(), other.begin());
  };
  std::erase_if(places_, [&](const auto& known) { return is_below(known.first); });
  places_.emplace(path, std::move(place));
}

void JsonDocument::set(Json& part, const KeyPath& path, const JsonView& value) {
  part = *value;
  set_place(path, value.place());
  const auto depth = static_cast<std::ptrdiff_t>(value.path().size());
  const auto& from = value.document().places_;
  // Paths that begin alike are next to each other.
  for (auto it = from.upper_bound(value.path()); it != from.end(); ++it) {
    const KeyPath& other = it->first;
    if (!std::equal(other.begin(), other.begin() + std::min(depth, std::ssize(other)), value.path().begin(),
                    value.path().end()))
      break;
    KeyPath to = path;
    to.insert(to.end(), other.begin() + depth, other.end());
    places_.insert_or_assign(std::move(to), it->second);
  }
}

const Json& JsonView::nothing() {
  static const Json null;
  return null;
}

const std::string& JsonView::text() const {
  static const std::string none;
  return (*this)->is_string() ? (*this)->get_ref<const std::string&>() : none;
}

JsonView JsonView::below(std::string key, const Json& value) const {
  JsonView child = *this;
  child.value_ = &value;
  child.path_.push_back(std::move(key));
  return child;
}

JsonView JsonView::find(std::string_view key) const {
  if (!(*this)->is_object()) return {};
  const auto found = (*this)->find(key);
  return found == (*this)->end() ? JsonView() : below(std::string(key), *found);
}

std::vector<JsonView> JsonView::children() const {
  std::vector<JsonView> children;
  if (!(*this)->is_structured()) return children;
  for (const auto& [key, value] : (*this)->items()) children.push_back(below(key, value));
  return children;
}

JsonPlace JsonView::key_place() const {
  JsonPlace place = this->place();
  place.is_key = true;
  return place;
}

JsonDocument document_of(Json value, const std::string& source) {
  return {std::move(value), {std::make_shared<const JsonSource>(JsonSource{.name = source})}};
}

bool same_value(const Json& a, const Json& b) { return nlohmann::json(a) == nlohmann::json(b); }

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMaxShown = 60;  // bytes; enough to recognise a value by
  return "\"" + shown_text(text, kMaxShown) + "\"";
}

// The number as its text has it; else as the program writes it.
static std::string written_number(const JsonView& value) {
  constexpr std::size_t kMaxShown = 40;
  const JsonPlace place = value.place();
  // At the place of a key it is an end of a range, which may be written as an integer.
  std::string text = place.is_key ? number_text(value.number()) : value->dump();
  if (place.has_lines() && !place.is_whole && place.source->offsets.contains(place.path)) {
    text = place.source->text.substr(place.offset());
    text.resize(std::min(text.find_first_not_of("+-.0123456789eE"), text.size()));
  }
  return shown_text(text, kMaxShown);
}

std::string describe(const JsonView& value) {
  if (value->is_array()) {
    constexpr std::size_t kMaxShown = 4;
    if (value->empty()) return "an empty list";
    if (value->size() > kMaxShown || !std::ranges::all_of(*value, &Json::is_number))
      return fmt::format("a list of {}", value->size());
    std::vector<std::string> numbers;
    for (const JsonView& number : value.children()) numbers.push_back(written_number(number));
    return fmt::format("[{}]", fmt::join(numbers, ", "));
  }
  if (value->is_object()) return value->empty() ? "an empty object" : "an object";
  if (value->is_number()) return written_number(value);
  if (!value->is_string()) return value->dump();
  return value.text().empty() ? "an empty string" : in_quotes(value.text());
}

std::string our_name(std::string_view word) {
  const auto* const known = std::ranges::find(kSynonyms, word, [](const auto& pair) { return pair.first; });
  return std::string(known == kSynonyms.end() ? word : known->second);
}

std::string suggestion(std::string_view wrong, std::span<const std::string> candidates) {
  const std::string name = our_name(wrong);
  const bool is_known = std::ranges::find(candidates, name) != candidates.end();
  return did_you_mean(is_known ? name : nearest_name(wrong, candidates));
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

void Problems::add_unknown_key(const JsonView& value, std::span<const std::string> allowed,
                               const std::string& elsewhere) {
  const std::string names =
      allowed.empty() ? "nothing is allowed here" : fmt::format("allowed: {}", fmt::join(allowed, ", "));
  add(value.key_place(), fmt::format("unknown key {}, {}{}", in_quotes(value.key()), names,
                                     elsewhere.empty() ? suggestion(value.key(), allowed) : elsewhere));
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
