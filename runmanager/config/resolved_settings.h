// A run's settings as JSON, which the runs of a sweep share but for what they differ in.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sweep {

/// A JSON object that is put together when it is first read: a sweep has up to 100,000 of them, and most are
/// never read, as in `sweep plan`. Copies share it until one is written. Reading is thread-safe.
class ResolvedSettings {
 public:
  using Json = nlohmann::ordered_json;
  /// A key of the object with its value; values may be shared by many objects.
  using Part = std::pair<const char*, std::shared_ptr<const Json>>;

  /// Null.
  ResolvedSettings() = default;
  ResolvedSettings(Json json);
  /// `common`, an object, with the values of `parts` in the place of its own. It has to have their keys,
  /// which must live as long as the program.
  ResolvedSettings(std::shared_ptr<const Json> common, std::vector<Part> parts);

  const Json& json() const;
  operator const Json&() const { return json(); }
  /// As those of Json.
  const Json& at(std::string_view key) const { return json().at(std::string(key)); }
  const Json& operator[](std::string_view key) const { return at(key); }
  bool contains(std::string_view key) const { return json().contains(std::string(key)); }
  std::string dump() const { return json().dump(); }
  /// For writing: this copy has an object of its own from now on.
  Json& operator[](std::string_view key);

  friend bool operator==(const ResolvedSettings& a, const ResolvedSettings& b) {
    return a.json() == b.json();
  }

 private:
  struct State;
  std::shared_ptr<State> state_;  // empty: null
};

}  // namespace sweep
