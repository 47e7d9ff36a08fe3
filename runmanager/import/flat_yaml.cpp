#include "runmanager/import/flat_yaml.h"

#include <optional>

namespace sweep {
namespace {

struct Line {
  std::size_t indent = 0;
  std::string key, value;
};

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1));
}

// In double quotes, a backslash precedes what would end them; in single ones, a quote is doubled.
bool is_escape(std::string_view text, std::size_t i, char quote) {
  const bool is_followed = i + 1 < text.size();
  return is_followed && (quote == '"' ? text[i] == '\\' : text.substr(i, 2) == "''");
}

// Where `mark` is first outside of quotes, none: npos.
std::size_t find_outside_quotes(std::string_view text, std::string_view mark) {
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool opens = quote == '\0' && (text[i] == '"' || text[i] == '\'') && (i == 0 || text[i - 1] == ' ');
    if (opens) {
      quote = text[i];
    } else if (quote != '\0' && is_escape(text, i, quote)) {
      ++i;
    } else if (text[i] == quote) {
      quote = '\0';
    } else if (quote == '\0' && text.substr(i).starts_with(mark)) {
      return i;
    }
  }
  return std::string_view::npos;
}

std::string without_comment(std::string_view text) {
  if (text.starts_with('#')) return "";
  return trimmed(text.substr(0, find_outside_quotes(text, " #")));
}

std::string without_quotes(const std::string& text) {
  const char quote = text.empty() ? '\0' : text.front();
  if (text.size() < 2 || (quote != '"' && quote != '\'') || text.back() != quote) return text;
  std::string plain;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (i + 2 < text.size() && is_escape(text, i, quote)) ++i;
    plain += text[i];
  }
  return plain;
}

std::optional<Line> parse_line(std::string_view text) {
  Line line{.indent = std::min(text.find_first_not_of(' '), text.size()), .key = {}, .value = {}};
  const std::string content = without_comment(text.substr(line.indent));
  // "key:value" is one word.
  const std::size_t colon = content.ends_with(':') && find_outside_quotes(content, ": ") == std::string::npos
                                ? content.size() - 1
                                : find_outside_quotes(content, ": ");
  if (content.empty() || content.starts_with('-') || colon == std::string::npos) return std::nullopt;
  line.key = without_quotes(trimmed(content.substr(0, colon)));
  line.value = trimmed(content.substr(colon + 1));
  return line;
}

bool is_plain(const std::string& value) {
  return !value.empty() && std::string_view("[{&*!|>").find(value.front()) == std::string_view::npos;
}

}  // namespace

FlatYaml read_flat_yaml(std::string_view text) {
  FlatYaml yaml;
  std::string open;  // the key at the margin whose value is nested
  const auto close = [&] {
    if (!open.empty()) yaml.nested.push_back(std::exchange(open, ""));
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::optional<Line> line = parse_line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line) continue;
    if (line->indent > 0) {
      if (open.empty() || line->key != "value" || !is_plain(line->value)) continue;
      yaml.values.emplace_back(std::exchange(open, ""), without_quotes(line->value));
      continue;
    }
    close();
    if (is_plain(line->value))
      yaml.values.emplace_back(line->key, without_quotes(line->value));
    else
      open = line->key;
  }
  close();
  return yaml;
}

}  // namespace sweep
