#include "runmanager/config/run_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <set>

#include "core/spec/arguments.h"

namespace sweep {
namespace {

constexpr std::size_t kMaxValueLength = 48;
constexpr std::size_t kMaxNameLength = 200;  // File systems allow 255 bytes; encrypting ones less.

bool is_safe(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("._-+").find(c) != std::string_view::npos;
}

// '~', '=' and ',' are escaped, too, so that no value can look like another run's name.
std::string escaped(std::string_view text) {
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool edge_dot = text[i] == '.' && (i == 0 || text[i - 1] == '.' || i + 1 == text.size());
    if (static_cast<unsigned char>(text[i]) < 0x80 && is_safe(text[i]) && !edge_dot) {
      safe += text[i];
    } else {
      safe += fmt::format("%{:02X}", static_cast<unsigned char>(text[i]));
    }
  }
  return safe;
}

// FNV-1a, 64 bits: the same on every machine, which std::hash need not be.
std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

// `text` cut to `longest` characters including the hash of the whole. Never cuts inside a %XX.
std::string shortened(const std::string& text, std::size_t longest) {
  if (text.size() <= longest) return text;
  const std::string end = "~" + hash_of(text);
  std::size_t keep = longest - end.size();
  if (keep >= 1 && text[keep - 1] == '%') keep -= 1;
  if (keep >= 2 && text[keep - 2] == '%') keep -= 2;
  return text.substr(0, keep) + end;
}

// The params without those that are the same in all runs; all of them if they all are.
std::vector<Params> without_constants(const std::vector<Params>& runs) {
  std::map<std::string_view, std::size_t> as_in_first;  // key: runs with the first run's value of it
  if (!runs.empty()) {
    for (const auto& [key, value] : runs.front()) as_in_first.emplace(key, 0);
  }
  for (const Params& params : runs) {
    for (const auto& param : params) {
      if (std::find(runs.front().begin(), runs.front().end(), param) != runs.front().end())
        ++as_in_first.at(param.first);
    }
  }
  std::vector<Params> varying = runs;
  bool any = false;
  for (Params& params : varying) {
    std::erase_if(params, [&](const auto& param) {
      const auto found = as_in_first.find(param.first);
      return found != as_in_first.end() && found->second == runs.size();
    });
    any = any || !params.empty();
  }
  return any ? varying : runs;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

std::string run_name(const Params& params) {
  std::string name;
  for (const auto& [key, value] : params) {
    name += (name.empty() ? "" : ",") + escaped(key) + "=" +
            shortened(escaped(param_text(value)), kMaxValueLength);
  }
  return name.empty() ? "run" : shortened(name, kMaxNameLength);
}

std::vector<std::string> run_names(const std::vector<Params>& runs) {
  std::vector<std::string> names;
  std::map<std::string, int> uses;
  for (const Params& params : without_constants(runs)) {
    names.push_back(run_name(params));
    ++uses[lower(names.back())];
  }
  // All that share a name get a hash of their values, so that a name does not depend on the order of the
  // runs.
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (uses[lower(names[i])] < 2) continue;
    std::string whole;
    for (const auto& [key, value] : runs[i]) whole += fmt::format("{}={}\n", key, param_text(value));
    names[i] += "~" + hash_of(whole);
  }
  std::set<std::string> taken;
  for (std::string& name : names) {  // Values that print alike but differ in type: "1" and 1.
    const std::string stem = name;
    for (int n = 2; !taken.insert(lower(name)).second; ++n) name = fmt::format("{}~{}", stem, n);
  }
  return names;
}

}  // namespace sweep
