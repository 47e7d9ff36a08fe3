#include "runmanager/sweepfile/sweep_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/suggest.h"
#include "runmanager/config/data_check.h"
#include "runmanager/sweepfile/key_path.h"
#include "runmanager/sweepfile/named_files.h"
#include "runmanager/sweepfile/run_reader.h"
#include "runmanager/sweepfile/search_reader.h"
#include "runmanager/sweepfile/slurm/slurm_spec.h"
#include "runmanager/sweepfile/space.h"
#include "runmanager/text/json_document.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::uintmax_t kLargestFile = 16u << 20;  // Larger ones are not JSON written by hand.

std::string read_standard_input() {
  std::string text;
  std::array<char, 1 << 16> part;
  while (std::cin.read(part.data(), part.size()) || std::cin.gcount() > 0) {
    text.append(part.data(), static_cast<std::size_t>(std::cin.gcount()));
    if (text.size() > kLargestFile)
      throw DataError("standard input: is larger than 16 MiB, want a sweep file");
  }
  if (std::cin.bad()) throw DataError("standard input: cannot be read");
  return text;
}

std::string read_sweep_text(const fs::path& file) {
  if (file == kStandardInput) return read_standard_input();
  std::error_code failed;
  const fs::file_status status = fs::status(file, failed);
  if (fs::is_character_file(status) || fs::is_block_file(status)) {
    throw DataError(file.string() + ": is a device, want a sweep file");
  }
  if (fs::is_regular_file(status) && fs::file_size(file, failed) > kLargestFile && !failed) {
    throw DataError(file.string() + ": is larger than 16 MiB, want a sweep file");
  }
  if (status.type() == fs::file_type::not_found) {
    throw DataError(
        fmt::format("{}: no such file{}", file.string(), did_you_mean(nearest_file(file).string())));
  }
  return read_file(file);
}

JsonDocument read_root(const fs::path& file) {
  JsonDocument root =
      parse_json(read_sweep_text(file), file == kStandardInput ? "standard input" : file.string());
  if (!root.json.is_object()) {
    throw ConfigError(fmt::format("{}: got {}, want an object: {{\"name\": …, \"dataset\": …}}",
                                  to_string(root.place({})), describe(root)));
  }
  return root;
}

// Removes what a sweep adds to the sweep.json that it leaves: "runs", "excluded", "file", "learned" and
// "provenance". A file without "provenance" is left alone, because there these keys are mistakes. Returns
// whether it has it.
bool remove_recorded_keys(JsonDocument& root) {
  if (!root.json.contains("provenance")) return false;
  for (const char* key : {"runs", "excluded", "file", "learned", "provenance"}) root.json.erase(key);
  return true;
}

// Returns the file without axes, rules and its name: what a single run consists of.
JsonDocument without_structure(JsonDocument root) {
  for (const Setting& setting : top_level_settings()) {
    if (!setting.sweepable) root.json.erase(setting.name);
  }
  return root;
}

// Returns the file with overrides and ranges written out: a sweep file that gives the same runs, wherever it
// lies.
Json expanded_json(const std::string& name, JsonDocument root, const JsonView& base) {
  Problems ignored;
  each_axes(root, [&](Json& axes, const KeyPath& at) {
    for (const JsonView& member : find_path(root, at).children()) {
      Axis axis = read_axis(member, ignored);
      if (!axis.range) axes[member.key()] = std::move(axis.values.json);
    }
  });
  Json json = {{"name", name}};
  json.update(*base);
  const auto copy = [&](const std::string& key) {
    if (root.json.contains(key)) json[key] = root.json[key];
  };
  for (const Setting& setting : settings_of(root)) {
    // The name is there; axes follow.
    const bool is_axes = setting.name == "params" || setting.name == "grids";
    if (!setting.sweepable && !is_axes && setting.name != "name" && setting.name[0] != '$')
      copy(setting.name);
  }
  copy("params");
  copy("grids");
  return json;
}

std::string sweep_name(const JsonView& root, const fs::path& file, Problems& problems) {
  const Setting& setting = *find_setting(top_level_settings(), "name");
  if (const JsonView name = root.find("name")) return check_value(name, setting, problems) ? name.text() : "";
  if (file == kStandardInput) {
    problems.add(root, "a sweep that is read from standard input has to have a \"name\"");
    return "";
  }
  // The file's name is held to the same rules; the message then asks for a "name".
  const JsonDocument stem(file.stem().string(), root.place());
  Problems found;
  if (!check_value(stem, setting, found))
    problems.add(root,
                 fmt::format("the file's name {} cannot name a directory, want a \"name\"", describe(stem)));
  return JsonView(stem).text();
}

int cuda_device_count(const LoadOptions& options) {
  if (options.cuda_device_count) return *options.cuda_device_count;
  return static_cast<int>(std::ranges::count_if(
      list_devices(), [](const DeviceInfo& info) { return info.device.type == DeviceType::kCuda; }));
}

Sweep expand_sweep(JsonDocument root, const fs::path& file, std::span<const std::string> overrides,
                   const LoadOptions& options) {
  Problems problems;
  Json learned = root.json.value("learned", Json());
  const bool is_recorded = remove_recorded_keys(root);
  std::vector<Assignment> plain = apply_overrides(root, overrides, options, problems);
  check_keys(root, settings_of(root), problems);
  NetworkFiles files(file.parent_path());
  const bool is_command = is_command_file(root);
  make_self_contained(root, plain, file.parent_path(), files);

  Sweep sweep;
  sweep.file = file;
  sweep.name = sweep_name(root, file, problems);
  const char* data = std::getenv("SWEEP_DATA");
  const ReadContext context{data != nullptr ? data : "", cuda_device_count(options)};

  const JsonDocument run_tree = without_structure(root);
  // Values as they are where no axis changes them; what is missing here may still come from an axis.
  Problems base_problems;
  const JsonDocument base = is_command ? run_tree : with_values(run_tree, plain, files, base_problems);
  JsonDocument rule_base = root;
  for (const JsonView& member : JsonView(base).children())
    rule_base.set(rule_base.json[member.key()], {member.key()}, member);
  const auto reader =
      std::make_shared<RunReader>(rule_base, run_tree, std::move(plain), std::move(files), context, problems);
  const Space& space = reader->space();
  sweep.search = read_search(rule_base, space, is_recorded, problems);
  // The axes of an earlier start may be those of its command line.
  if (!is_recorded && problems.empty()) space.check_rules(rule_base, problems);
  read_slurm(root, problems);  // For its mistakes; slurm_spec() reads what it says.
  if (sweep.search && draws_points(*sweep.search, space)) {
    problems.throw_if_any();
    check_ranges(space, problems);
    const fs::path before = options.logdir.empty() ? "" : options.logdir / sweep.name / "sweep.json";
    learn_as_before(root, *sweep.search, before, learned, problems);
    read_known_points(root, space.grids().at(0).axes, reader->domain(), rule_base, file.parent_path(),
                      *sweep.search, problems);
    problems.throw_if_any();
    reader->draw_trials(*sweep.search, epochs_of(rule_base), sweep);
    if (sweep.runs.empty()) problems.add(root, "every point is excluded, want at least one");
    // A search that has begun goes on, whatever it may come to.
    std::error_code ignored;
    if (adds_trials(*sweep.search) && !is_recorded && !fs::exists(before, ignored))
      reader->check_values_together();
  } else {
    if (has_range(space)) problems.throw_if_any();  // Nothing can be expanded, and why was said.
    reader->read_grids(rule_base, sweep, problems);
  }
  problems.throw_if_any();
  sweep.resolved = expanded_json(sweep.name, std::move(root), base);
  if (!learned.is_null()) sweep.resolved["learned"] = std::move(learned);
  if (!is_command) check_against_data(sweep, known_data_sizes);
  return sweep;
}

}  // namespace

Sweep load_sweep(const fs::path& file, std::span<const std::string> overrides, const LoadOptions& options) {
  return expand_sweep(read_root(file), file, overrides, options);
}

Sweep make_command_sweep(const std::string& name, std::span<const std::string> command,
                         std::span<const std::string> overrides, const LoadOptions& options) {
  return expand_sweep(document_of({{"name", name}, {"command", command}}, "command line"),
                      fs::current_path() / "command line", overrides, options);
}

}  // namespace sweep
