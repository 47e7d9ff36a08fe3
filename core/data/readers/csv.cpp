#include "core/data/readers/readers.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/readers/csv_columns.h"
#include "core/data/readers/csv_rows.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRowsBetweenChecks = 4096;
constexpr std::string_view kSplit = "split";  // the column that says which part a row is of

const std::vector<std::string>& endings() {
  static const std::vector<std::string> all = {".csv", ".tsv", ".csv.gz", ".tsv.gz"};
  return all;
}

// "test.csv" and "test-2.csv" are of the test part; "tests.csv" is not, but of the training part.
DataPart part_of_file(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::string word = name.substr(0, name.find_first_of("._-0123456789"));
  return part_called(word).value_or(kTrainPart);
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::count(names, name) > 0;
}

std::size_t place_of(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
}

// `place`: of the header.
void check_header(const std::vector<std::string>& header, const RowPlace& place) {
  const auto is_number = [](const std::string& name) {
    return !name.empty() && name.find_first_not_of("0123456789+-.eE") == std::string::npos;
  };
  const std::ptrdiff_t unnamed = header.front().empty() ? 1 : 0;
  if (std::all_of(header.begin() + unnamed, header.end(), is_number))
    refuse(place.file, "line {} holds numbers; expected a header, the names of the columns", place.line);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (!is_utf8(header[i]))
      refuse(place.file,
             "the name of column {} is not UTF-8; if it is Latin-1, set \"encoding\": \"latin-1\"", i + 1);
    if (header[i].empty() && i > 0) refuse(place.file, "column {} has no name", i + 1);
    if (!seen.insert(header[i]).second) refuse(place.text(), "two columns are called \"{}\"", header[i]);
  }
}

DataPart split_part(std::string_view field, const RowPlace& place) {
  if (const std::optional<DataPart> part = part_called(trim(field))) return *part;
  refuse(place.text() + ", column \"split\"",
         "\"{}\" is no part; allowed: \"train\", \"validation\", \"test\"", field);
}

class Table {
 public:
  explicit Table(const ReadOptions& options) : options_(options) {}

  void read(InputFile& file, DataPart part) {
    CsvRows rows(source_of(file), options_.encoding);
    if (!rows.next()) refuse(file.name(), "is empty, expected a table");
    place_ = rows.place();
    std::vector<std::string> header;
    for (const std::string& field : rows.fields()) header.emplace_back(trim(field));
    if (columns_.empty()) {
      // Between commas, one inside a number is rather that of thousands.
      takes_comma_ = options_.decimal == DecimalMark::kComma ||
                     (options_.decimal == DecimalMark::kAuto && rows.separator() != ',');
      first_file_ = file.name();
      header_ = std::move(header);
      set_columns();
    } else if (header != header_) {
      const auto [ours, theirs] = std::mismatch(header.begin(), header.end(), header_.begin(), header_.end());
      refuse(file.name(), "has other columns than {}: column {} is {}, not {}", first_file_,
             ours - header.begin() + 1, ours == header.end() ? "none" : quoted_name(*ours),
             theirs == header_.end() ? "none" : quoted_name(*theirs));
    }
    const std::size_t rows_before = parts_.size() + refused_.size();
    while (rows.next()) {
      place_ = rows.place();
      add_row(rows.fields(), part);
    }
    if (parts_.size() + refused_.size() == rows_before) refuse(file.name(), "has a header, but no rows");
  }

  DataArrays take_data(const std::string& name) {
    DataArrays data;
    for (TableColumn& column : columns_) column.finish();
    if (!is_known()) TableColumn::check(columns_, options_, name, notes_);
    std::size_t features = 0;
    for (const std::size_t i : features_) {
      data.columns.push_back(columns_[i].feature());
      features += data.columns.back().features();
    }
    check_memory(parts_.size(), {static_cast<std::int64_t>(features)}, sizeof(float), name);
    if (!options_.unlabelled && std::ranges::count(parts_, kTrainPart) == 0)
      refuse(
          name,
          "has no rows to train on: by the file's name or the column \"split\" all are to validate or test");
    if (!options_.label.empty())
      data.class_names = columns_[place_of(header_, options_.label)].feature().categories;
    data.target_names = options_.targets;
    for (const DataPart part : {kTrainPart, kValidationPart, kTestPart}) add_part(part, features, data);
    data.lines = std::move(lines_);
    data.skipped = std::move(refused_);
    data.notes = std::move(notes_);
    return data;
  }

 private:
  bool is_known() const { return !options_.columns.empty(); }

  void check_columns_exist() const {
    std::vector<std::string> wanted = options_.targets;
    if (!options_.label.empty()) wanted.push_back(options_.label);
    if (!is_known()) {
      wanted.insert(wanted.end(), options_.categorical.begin(), options_.categorical.end());
      wanted.insert(wanted.end(), options_.ignore.begin(), options_.ignore.end());
    }
    for (const std::string& name : wanted) {
      if (has(header_, name)) continue;
      const std::string nearest = nearest_name(name, header_);
      refuse<ConfigError>(first_file_, "has no column \"{}\"{} Columns: {}", name,
                          nearest.empty() ? "." : did_you_mean(nearest, "; did"), listed_names(header_, 20));
    }
  }

  void choose_targets() {
    if (!options_.label.empty() && !options_.targets.empty())
      throw ConfigError(fmt::format("a table has either a label or targets, not both: \"{}\" and \"{}\"",
                                    options_.label, options_.targets.front()));
    for (const std::string& name : options_.targets) {
      if (std::ranges::count(options_.targets, name) > 1)
        refuse<ConfigError>(first_file_, "\"target\" lists column \"{}\" twice; once is enough", name);
    }
    for (const std::string& name : options_.ignore) {
      if (name.empty() || (name != options_.label && !has(options_.targets, name))) continue;
      refuse<ConfigError>(first_file_,
                          "column \"{}\" is to be predicted, and is listed under \"ignore\" as well", name);
    }
    if (!options_.label.empty() || !options_.targets.empty()) return;
    std::vector<std::string> found = {"label", "class", "target"};
    std::erase_if(found,
                  [&](const std::string& name) { return !has(header_, name) || has(options_.ignore, name); });
    if (found.size() > 1) {
      refuse(first_file_,
             "any of the columns {} may be what to predict; name it by \"label\" (classes) or \"target\" "
             "(numbers), and list the others under \"ignore\" unless they are features",
             listed_names(found));
    }
    if (!found.empty() && found.front() == "target")
      options_.targets = found;
    else if (!found.empty())
      options_.label = found.front();
    else
      refuse(first_file_,
             "has no column \"label\", \"class\" or \"target\"; name the column of classes by \"label\" or "
             "those of numbers by \"target\". Columns, by line {}: {}",
             place_.line, listed_names(header_, 20));
  }

  ColumnUse use_of(const std::string& column) const {
    if (column.empty() || has(options_.ignore, column)) return ColumnUse::kIgnored;
    if (column == options_.label) return ColumnUse::kLabel;
    if (has(options_.targets, column)) return ColumnUse::kTarget;
    if (column == kSplit) return ColumnUse::kSplit;
    return ColumnUse::kFeature;
  }

  // Without targets, and next to known columns, others are ignored.
  void set_columns() {
    if (!is_known()) check_header(header_, place_);
    if (!options_.unlabelled) {
      check_columns_exist();
      choose_targets();
    }
    for (std::size_t i = 0; i < header_.size(); ++i) {
      ColumnUse use = options_.unlabelled ? ColumnUse::kIgnored : use_of(header_[i]);
      if (is_known() && use == ColumnUse::kFeature) use = ColumnUse::kIgnored;
      columns_.emplace_back(header_[i], use, takes_comma_, options_, place_);
      if (use == ColumnUse::kFeature) features_.push_back(i);
    }
    if (is_known()) return set_known_columns();
    if (header_.front().empty()) {
      notes_.push_back(first_file_ +
                       ": column 1 has no name and is ignored, as row numbers that pandas writes");
    }
    if (features_.empty()) refuse(first_file_, "has no column of features");
  }

  void set_known_columns() {
    std::vector<std::string> missing;
    std::unordered_map<std::string_view, std::vector<std::size_t>> places;  // of names: there may be many
    for (std::size_t i = 0; i < header_.size(); ++i) places[header_[i]].push_back(i);
    for (const FeatureColumn& known : options_.columns) {
      const std::vector<std::size_t>& found = places[known.name];
      if (found.size() > 1)
        refuse(first_file_,
               "two columns are called \"{}\", which the network was trained on; take one of them out",
               known.name);
      if (found.empty()) {
        missing.push_back(known.name);
        continue;
      }
      features_.push_back(found.front());
      columns_[found.front()] = TableColumn(known, options_, place_);
    }
    if (missing.empty()) return;
    const std::string nearest = nearest_name(missing.front(), header_);
    refuse(first_file_, "has no column {}, which the network was trained on; its columns: {}{}",
           listed_names(missing), listed_names(header_),
           nearest.empty() ? "" : "; is " + quoted_name(nearest) + " meant?");
  }

  void add_row(const std::vector<std::string>& fields, DataPart part) {
    if (fields.size() != header_.size()) {
      refuse(place_.text(), "has {}, the header has {}", counted(fields.size(), "field"), header_.size());
    }
    try {
      for (std::size_t i = 0; i < fields.size(); ++i) {
        columns_[i].add(fields[i]);
        if (columns_[i].use() == ColumnUse::kSplit) part = split_part(fields[i], place_);
      }
    } catch (const DataError& error) {
      if (!options_.unlabelled) throw;
      for (TableColumn& column : columns_) column.keep(parts_.size());
      const std::string reason = std::string(error.what()).substr(place_.text().size() + 2);
      refused_.push_back({place_.file + ":" + std::to_string(place_.line), reason});
      return;
    }
    parts_.push_back(part);
    if (is_known()) lines_.push_back(place_.line);
    if (parts_.size() % kRowsBetweenChecks == 0)
      check_memory(parts_.size(), {static_cast<std::int64_t>(columns_.size())}, sizeof(float), place_.file);
  }

  // Adds the arrays of one part, if it has rows.
  void add_part(DataPart part, std::size_t features, DataArrays& data) const {
    const std::int64_t rows = std::ranges::count(parts_, part);
    if (rows == 0) return;
    std::vector<float> samples(static_cast<std::size_t>(rows) * features), numbers;
    std::vector<std::int64_t> classes;
    std::vector<std::size_t> targets;  // in their order, which need not be that of the columns
    for (const std::string& target : options_.targets) targets.push_back(place_of(header_, target));
    const std::size_t label = place_of(header_, options_.label);
    float* out = samples.data();
    for (std::size_t row = 0; row < parts_.size(); ++row) {
      if (parts_[row] != part) continue;
      for (const std::size_t i : features_) {
        columns_[i].write_features(row, out);
        out += columns_[i].feature().features();
      }
      if (!options_.label.empty()) classes.push_back(static_cast<std::int64_t>(columns_[label].value(row)));
      for (const std::size_t i : targets) numbers.push_back(columns_[i].value(row));
    }
    const std::string name = kPartNames[part];
    data.arrays.push_back(
        {"x_" + name, {rows, static_cast<std::int64_t>(features)}, std::move(samples), first_file_});
    if (!options_.label.empty())
      data.arrays.push_back({"y_" + name, {rows}, std::move(classes), first_file_});
    else if (!targets.empty())
      data.arrays.push_back(
          {"y_" + name, {rows, static_cast<std::int64_t>(targets.size())}, std::move(numbers), first_file_});
  }

  ReadOptions options_;  // with the label or targets that were found
  std::string first_file_;
  RowPlace place_;            // of the row that is read
  bool takes_comma_ = false;  // in numbers
  std::vector<std::string> header_;
  std::vector<TableColumn> columns_;   // of the header
  std::vector<std::size_t> features_;  // which of them, in the order of the samples' features
  std::vector<DataPart> parts_;        // per row
  std::vector<std::size_t> lines_;     // per row of known columns
  std::vector<SkippedFile> refused_;   // rows
  std::vector<std::string> notes_;
};

bool is_table(const fs::path& path, bool tabs) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    const std::vector<fs::path> files = files_with_ending(path, endings());
    return !files.empty() && is_table(files.front(), tabs);
  }
  std::string start = first_bytes(path, 64 << 10);
  if (start.starts_with("\xff\xfe") || start.starts_with("\xfe\xff"))
    std::erase(start, '\0');  // UTF-16: enough to see its separators
  start.erase(0, std::min(start.find_first_not_of("\r\n"), start.size()));
  const std::string_view line = std::string_view(start).substr(0, start.find_first_of("\r\n"));
  if (line.empty() || start.find('\0') != std::string::npos) return false;
  const bool has_tabs = std::ranges::count(line, '\t') > std::ranges::count(line, ',');
  return tabs ? has_tabs : !has_tabs && line.find_first_of(",;") != std::string_view::npos;
}

}  // namespace

bool is_csv(const fs::path& path) { return is_table(path, false); }
bool is_tsv(const fs::path& path) { return is_table(path, true); }

DataArrays read_csv(std::span<const fs::path> paths, const ReadOptions& options) {
  Table table(options);
  std::vector<DataFile> sources;
  for (const fs::path& path : files_in(paths, endings())) {
    InputFile file(path);
    table.read(file, options.unlabelled ? kTrainPart : part_of_file(path));
    sources.push_back({path, file.sha256()});
  }
  DataArrays data = table.take_data(paths.front().string());
  data.files = std::move(sources);
  return data;
}

DataArrays read_csv_file(InputFile& file, const ReadOptions& options) {
  Table table(options);
  table.read(file, kTrainPart);
  return table.take_data(file.name());
}

}  // namespace sweep
