#include "core/json/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// So many keys of an object are compared one by one with a new key; beyond that they are in a set.
constexpr std::size_t kFewKeys = 16;
constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{1} << 30;

// Builds the tree from the parser's events. nlohmann's own builder looks every new key up among all others of
// an ordered object, which takes quadratic time.
class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(const std::string& subject, std::size_t max_depth) : subject_(subject), max_depth_(max_depth) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // Text has none.
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return open(Json::object());
  }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override {
    keys_.pop_back();
    open_.pop_back();
    return true;
  }
  bool end_array() override {
    open_.pop_back();
    return true;
  }

  bool key(string_t& key) override {
    auto& members = open_.back()->get_ref<Json::object_t&>();
    std::unordered_set<std::string>& keys = keys_.back();
    if (members.size() == kFewKeys) {
      for (const auto& member : members) keys.insert(member.first);
    }
    const bool is_new =
        members.size() < kFewKeys
            ? std::ranges::find(members, key, &Json::object_t::value_type::first) == members.end()
            : keys.insert(key).second;
    if (!is_new) throw DataError(subject_ + " has the key \"" + key + "\" twice");
    members.emplace_back(std::move(key), nullptr);
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    throw DataError(subject_ + " is not valid JSON: " + json_reason(error));
  }

  Json release_root() { return std::move(root_); }

 private:
  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  bool open(Json container) {
    if (open_.size() == max_depth_) throw DataError(subject_ + " is nested too deeply");
    open_.push_back(place(std::move(container)));
    return true;
  }

  // Pointers to open containers stay valid: only the innermost one grows.
  Json* place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    Json& member = parent.get_ref<Json::object_t&>().back().second;
    member = std::move(value);
    return &member;
  }

  const std::string& subject_;
  std::size_t max_depth_;
  Json root_;
  std::vector<Json*> open_;  // containers without their closing bracket, outermost first
  std::vector<std::unordered_set<std::string>> keys_;  // of the open objects that have more than a few
};

}  // namespace

std::string json_reason(const std::exception& error) {
  const std::string what = error.what();
  return what.substr(what.find("] ") + 2);
}

Json parse_json_text(std::string_view text, const std::string& subject, std::size_t max_depth) {
  if (text.find('\0') != std::string_view::npos)
    throw DataError(subject + " is not valid JSON: it has a NUL byte");
  TreeBuilder builder(subject, max_depth);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.release_root();
}

Json read_json_file(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (!error && bytes > kMaxFileBytes) throw DataError(path.string() + ": is larger than 1 GiB");
  return parse_json_text(read_file(path), path.string() + ":");
}

const Json* find_at(const Json& root, std::string_view path) {
  const Json* value = &root;
  while (!path.empty()) {
    if (!value->is_object()) return nullptr;
    const std::size_t dot = path.find('.');
    const auto member = value->find(path.substr(0, dot));
    if (member == value->end()) return nullptr;
    value = &*member;
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return value;
}

}  // namespace sweep
