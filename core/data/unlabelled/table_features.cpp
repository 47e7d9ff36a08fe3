#include "core/data/unlabelled/table_features.h"

#include <algorithm>
#include <string_view>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "core/data/readers/csv_columns.h"
#include "core/data/readers/csv_rows.h"

namespace sweep {
namespace {

constexpr std::size_t kMaxShown = 6;  // names in a message

std::string listed_names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxShown); ++i)
    text += (i > 0 ? ", " : "") + quoted_name(names[i]);
  return text + (names.size() > kMaxShown ? ", …" : "");
}

class FeatureRows {
 public:
  FeatureRows(InputFile& file, const SampleFormat& format)
      : rows_(file, format.encoding), name_(file.name()), format_(format) {}

  TableFeatures read() {
    read_header();
    TableFeatures features;
    while (rows_.next()) {
      const std::vector<std::string>& fields = rows_.fields();
      if (fields.size() != header_.size()) {
        throw DataError(name_ + ": line " + std::to_string(rows_.line()) + ": has " +
                        std::to_string(fields.size()) + (fields.size() == 1 ? " field" : " fields") +
                        ", the header has " + std::to_string(header_.size()));
      }
      refusal_.clear();
      for (std::size_t c = 0; c < places_.size(); ++c) add(trim(fields[places_[c]]), c, features.values);
      if (refusal_.empty()) {
        features.lines.push_back(rows_.line());
      } else {
        features.values.resize(features.lines.size() * features_);
        features.refused.push_back({rows_.line(), refusal_});
      }
    }
    if (features.lines.empty() && features.refused.empty())
      throw DataError(name_ + ": has a header, but no rows");
    return features;
  }

 private:
  void read_header() {
    if (!rows_.next()) throw DataError(name_ + ": is empty, expected a table");
    for (const std::string& field : rows_.fields()) header_.emplace_back(trim(field));
    std::vector<std::string> missing;
    for (const FeatureColumn& column : format_.columns) {
      const auto at = std::ranges::find(header_, column.name);
      if (at == header_.end()) missing.push_back(column.name);
      places_.push_back(static_cast<std::size_t>(at - header_.begin()));
      firsts_.push_back(features_);
      features_ += column.features();
    }
    if (missing.empty()) return;
    const std::string nearest = nearest_name(missing.front(), header_);
    throw DataError(name_ + ": has no column " + listed_names(missing) +
                    ", which the network was trained on; its columns: " + listed_names(header_) +
                    (nearest.empty() ? "" : "; is " + quoted_name(nearest) + " meant?"));
  }

  [[noreturn]] void fail(const FeatureColumn& column, const std::string& problem) const {
    throw DataError(name_ + ": line " + std::to_string(rows_.line()) + ", column " +
                    quoted_name(column.name) + ": " + problem);
  }

  void add(std::string_view field, std::size_t c, std::vector<float>& out) {
    const FeatureColumn& column = format_.columns[c];
    if (is_missing(field)) {
      if (format_.fill_values.empty()) {
        fail(column, "the value is missing, as " + shown_field(field) +
                         "; a network that is to take such rows is trained with \"missing\": \"mean\"");
      }
      const auto first = format_.fill_values.begin() + static_cast<std::ptrdiff_t>(firsts_[c]);
      out.insert(out.end(), first, first + static_cast<std::ptrdiff_t>(column.features()));
    } else if (column.categories.empty()) {
      float value = 0;
      bool has_comma = false;
      if ((column.decimal_comma ? parse_number(field, value, has_comma) : parse_number(field, value)) !=
          ParsedNumber::kNumber)
        fail(column, shown_field(field) + " is not a finite number, as those it was trained on");
      out.push_back(value);
    } else {
      add_category(field, column, out);
    }
  }

  void add_category(std::string_view field, const FeatureColumn& column, std::vector<float>& out) {
    const auto found = std::ranges::find(column.categories, field);
    if (found == column.categories.end()) {
      out.resize(out.size() + column.features());
      if (format_.unknown == UnknownCategory::kZeros && column.one_hot) return;
      refusal_ = "column " + quoted_name(column.name) + ": " + shown_field(field) +
                 " was not there in training; allowed: " + listed_names(column.categories);
      return;
    }
    const auto index = static_cast<std::size_t>(found - column.categories.begin());
    if (!column.one_hot) {
      out.push_back(static_cast<float>(index));
      return;
    }
    out.resize(out.size() + column.categories.size());
    out[out.size() - column.categories.size() + index] = 1;
  }

  CsvRows rows_;
  const std::string name_;
  const SampleFormat& format_;
  std::vector<std::string> header_;
  std::vector<std::size_t> places_;  // of each of the format's columns in the header
  std::vector<std::size_t> firsts_;  // the first feature of each
  std::size_t features_ = 0;
  std::string refusal_;  // of the row that is read
};

}  // namespace

TableFeatures read_table_features(InputFile& file, const SampleFormat& format) {
  return FeatureRows(file, format).read();
}

}  // namespace sweep
