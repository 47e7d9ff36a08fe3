// `sweep complete`: what the shells' completion scripts ask. Not for people, so help does not show it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "core/base/printable.h"
#include "runmanager/sweepfile/schema.h"
#include "tools/commands.h"
#include "tools/exit_code.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

// A line per candidate for the word at the cursor: the candidate, a tab and what it is. One that ends with
// "=" or "." goes on. The line ":files" asks for names of files, which shells know best.
class Offers {
 public:
  explicit Offers(std::string word) : word_(std::move(word)) {}
  const std::string& word() const { return word_; }
  void add(const std::string& text, const std::string& help = "") const {
    if (text.starts_with(word_) && printable_line(text) == text) std::cout << text << '\t' << help << '\n';
  }
  void add_files() const { std::cout << ":files\n"; }

 private:
  std::string word_;
};

// Calls visit(part) for `schema` and all that it refers to or may be instead.
template <class Visit>
void for_each_part(const Json& schema, const Json& root, const Visit& visit) {
  visit(schema);
  if (schema.contains("$ref"))
    for_each_part(root.at(Json::json_pointer(schema["$ref"].get<std::string>().substr(1))), root, visit);
  for (const char* key : {"anyOf", "oneOf", "allOf"}) {
    for (const Json& part : schema.value(key, Json::array())) for_each_part(part, root, visit);
  }
}

// The schemas of the value at `path`, "optimizer.betas": several, if it may have several types.
std::vector<Json> schemas_at(const Json& root, std::string path) {
  std::vector<Json> schemas = {root};
  while (!path.empty()) {
    const std::string key = path.substr(0, path.find('.'));
    path.erase(0, key.size() + 1);
    std::vector<Json> next;
    for (const Json& schema : schemas) {
      for_each_part(schema, root, [&](const Json& part) {
        if (part.contains("properties") && part["properties"].contains(key))
          next.push_back(part["properties"][key]);
      });
    }
    schemas = std::move(next);
  }
  return schemas;
}

// Keys of sweep files, and the values that they have by name: "device=", "optimizer.", "optimizer=adam,sgd".
void add_keys(const Offers& offers) {
  const Json root = sweep_schema();
  const std::string& word = offers.word();
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) {
    const std::string parent = word.substr(0, word.rfind('.') == std::string::npos ? 0 : word.rfind('.') + 1);
    for (const Json& schema : schemas_at(root, parent.substr(0, parent.empty() ? 0 : parent.size() - 1))) {
      for_each_part(schema, root, [&](const Json& part) {
        const Json properties = part.value("properties", Json::object());
        for (const auto& [key, value] : properties.items()) {
          bool has_keys = false;
          for_each_part(value, root, [&](const Json& inner) { has_keys |= inner.contains("properties"); });
          offers.add(parent + key + "=", value.value("description", ""));
          if (has_keys) offers.add(parent + key + ".");
        }
      });
    }
    return;
  }
  const std::size_t comma = word.rfind(',');
  const std::string before = word.substr(0, (comma == std::string::npos ? equals : comma) + 1);
  for (const Json& schema : schemas_at(root, word.substr(0, equals))) {
    for_each_part(schema, root, [&](const Json& part) {
      Json values = part.value("enum", Json::array());
      if (part.contains("const")) values.push_back(part["const"]);
      if (part.contains("type") && part["type"] == "boolean") values = {"true", "false"};
      for (const Json& value : values) {
        if (value.is_string()) offers.add(before + value.get<std::string>());
      }
    });
  }
  offers.add_files();
}

// The choices "{a,b}" in the type that the parser shows for an option, or files.
void add_values(const std::string& type, const Offers& offers, const std::string& before = "") {
  const std::size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos) return offers.add_files();
  for (const std::string& choice : CLI::detail::split(type.substr(begin + 1, end - begin - 1), ','))
    offers.add(before + choice);
}

// Throws CLI::OptionNotFound if the command has no such option.
const CLI::Option& option_of(const CLI::App& command, const std::string& word) {
  return *command.get_option(word.substr(0, word.find('=')));
}

// `words`: the command line up to the cursor, without the program. A first word that is no command is a file.
void complete(const CLI::App& app, const Words& words) {
  const Offers offers(words.back());
  const auto commands = app.get_subcommands(nullptr);
  const auto named = std::ranges::find(commands, words[0], [](const CLI::App* c) { return c->get_name(); });
  const bool is_named = words.size() > 1 && named != commands.end();
  const CLI::App& command = is_named ? **named : *app.get_subcommand(kDefaultCommand);
  std::size_t position = 0;             // among the positionals
  const CLI::Option* option = nullptr;  // waits for its value
  for (std::size_t i = is_named ? 1 : 0; i + 1 < words.size(); ++i) {
    if (option != nullptr)
      option = nullptr;
    else if (!words[i].starts_with("-"))
      ++position;
    else if (words[i].find('=') == std::string::npos &&
             option_of(command, words[i]).get_items_expected_max() > 0)
      option = &option_of(command, words[i]);
  }
  if (option != nullptr) return add_values(option->get_type_name(), offers);
  if (const std::size_t equals = offers.word().find('='); offers.word().starts_with("-")) {
    if (equals != std::string::npos)
      return add_values(option_of(command, offers.word()).get_type_name(), offers,
                        offers.word().substr(0, equals + 1));
    for (const CLI::Option* each : command.get_options()) {
      for (const std::string& name : each->get_lnames()) offers.add("--" + name, each->get_description());
    }
    return;
  }
  if (words.size() == 1) {
    for (const CLI::App* each : commands) {
      if (!each->get_group().empty()) offers.add(each->get_name(), each->get_description());
    }
    return offers.add_files();
  }
  const auto positionals = command.get_options([](const CLI::Option* o) { return o->get_positional(); });
  if (positionals.empty()) return;
  const std::string type = positionals[std::min(position, positionals.size() - 1)]->get_type_name();
  return type == "KEY=VALUE" ? add_keys(offers) : add_values(type, offers);
}

}  // namespace

Command complete_command() {
  return {.name = "complete",
          .description = "what the words after -- can go on with: a line each, with a tab before its help",
          .missing_argument = "",
          .add_to = [](CLI::App& app) -> CommandAction {
            auto words = std::make_shared<Words>();
            app.add_option("words", *words, "the command line up to the cursor");
            return [words, &app](const Words& typed) {
              // Not `words`: the parser drops empty ones.
              const auto follow = std::ranges::find(typed, "--");
              if (follow == typed.end() || follow + 1 == typed.end()) return kExitDone;
              try {
                complete(*app.get_parent(), {follow + 1, typed.end()});
              } catch (const CLI::OptionNotFound&) {
                // There is nothing to offer after a mistyped option.
              }
              return kExitDone;
            };
          },
          .is_for_scripts = true};
}

}  // namespace sweep
