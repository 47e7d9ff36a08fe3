#include "core/data/readers/csv_columns.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <regex>
#include <utility>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/readers/input_file.h"

namespace sweep {
namespace {

// More are rather names of rows than categories. Indices of all of them are exact as floats.
constexpr std::size_t kMaxOneHot = 1000;
constexpr std::size_t kFewCategories = 32;  // may be as many as rows
constexpr std::size_t kMaxOrdinal = 1 << 20;
constexpr std::size_t kMaxTextClasses = 65536;
constexpr double kMinSteps = 256;      // of float32 between the lowest and the highest number of a column
constexpr std::size_t kMaxShown = 40;  // bytes of a field in a message

// "2024-03-01", "1.3.2024", "03/01/24", with a time of day after it or without.
bool is_date(const std::string& text) {
  static const std::regex form(
      R"((\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))([T ]\d{1,2}:\d{2}.{0,20})?)");
  return text.size() <= 48 && std::regex_match(text, form);
}

// A field as a number.
enum class ParsedNumber { kNumber, kText, kNotFinite };

// Sets `value` unless the field is text or no finite float. One too small for a float is 0.
ParsedNumber parse_number(std::string_view field, float& value) {
  if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (end != field.data() + field.size()) return ParsedNumber::kText;
  if (error == std::errc::result_out_of_range) {
    // Too small for a float is as good as 0; too large is not.
    double wide = 0;
    const auto [wide_end, wide_error] = std::from_chars(field.data(), field.data() + field.size(), wide);
    const bool is_tiny = wide_error == std::errc() ? std::abs(wide) < 1
                                                   : field.find("e-") != std::string_view::npos ||
                                                         field.find("E-") != std::string_view::npos;
    value = 0;
    return is_tiny ? ParsedNumber::kNumber : ParsedNumber::kNotFinite;
  }
  if (error != std::errc()) return ParsedNumber::kText;
  return std::isfinite(value) ? ParsedNumber::kNumber : ParsedNumber::kNotFinite;
}

// The same of a number that, if it `takes_comma`, may have a comma before its fraction, and then no point.
// Sets `has_comma` if it has one, else leaves it.
ParsedNumber parse_number(std::string_view field, float& value, bool takes_comma, bool& has_comma) {
  const std::size_t comma = field.find(',');
  if (!takes_comma || comma == std::string_view::npos) return parse_number(field, value);
  if (field.find('.') != std::string_view::npos) return ParsedNumber::kText;
  std::string pointed(field);
  pointed[comma] = '.';
  const ParsedNumber parsed = parse_number(pointed, value);
  has_comma = has_comma || parsed != ParsedNumber::kText;
  return parsed;
}

std::string shortest(double number) {
  std::array<char, 400> text;  // the largest has 309 digits
  const auto fixed = std::chars_format::fixed;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number, fixed).ptr};
}

// The number `field`, which is `rounded` as a float.
double exact_number(std::string_view field, float rounded) {
  if (field.size() < 8) return static_cast<double>(rounded);  // too few digits to matter
  std::string pointed(field.substr(field.starts_with('+') ? 1 : 0));
  std::ranges::replace(pointed, ',', '.');
  return number_in<double>(pointed).value_or(static_cast<double>(rounded));
}

// Whether the point of a number is followed by three digits, and has one to three before it, as in 1.690.
bool may_have_thousands(std::string_view number) {
  if (number.starts_with('+') || number.starts_with('-')) number.remove_prefix(1);
  const std::size_t point = number.find('.');
  return point >= 1 && point <= 3 && number.size() == point + 4 && number.front() != '0';
}

// What is wrong with a number in which marks separate the thousands, as in 1,234,567.8 or 1.234.567, or that
// has a sign of percent or of a currency, as 12 % or $1,234.50; "" for other texts.
std::string problem_of_marks(const std::string& text) {
  static const std::regex thousands(R"([-+]?\d{1,3}([,. '])\d{3}(\1\d{3})*([.,]\d+)?)"),
      sign(R"([-+]?(\$|€|£) ?[-+]?\d[\d., ]*|[-+]?\d[\d., ]*(%|\$|€|£))");
  if (text.size() > 48) return "";
  if (std::regex_match(text, thousands)) return "has marks of thousands: take them out";
  return std::regex_match(text, sign) ? "has a sign of percent or of a currency: take it out" : "";
}

// True for an empty field and the usual words for one without a value, in any case.
bool is_missing(std::string_view field) {
  constexpr std::string_view kWords[] = {"", "na", "n/a", "nan", "null", "none", "?", "#n/a", "<na>"};
  if (field.size() > 4) return false;
  return std::ranges::count(kWords, lower_case(std::string(field))) > 0;
}

// `field` in quotes for a message; a long one is cut.
std::string shown_field(std::string_view field) { return quoted_name(shown_text(field, kMaxShown)); }

}  // namespace

std::string_view trim(std::string_view field) {
  while (!field.empty() && (field.front() == ' ' || field.front() == '\t')) field.remove_prefix(1);
  while (!field.empty() && (field.back() == ' ' || field.back() == '\t')) field.remove_suffix(1);
  return field;
}

TableColumn::TableColumn(std::string name, ColumnUse use, bool takes_comma, const ReadOptions& options,
                         const RowPlace& place)
    : feature_{.name = std::move(name)},
      use_(use),
      options_(&options),
      place_(&place),
      takes_comma_(takes_comma) {
  is_listed_ = std::ranges::count(options.categorical, feature_.name) > 0;
  if (use_ == ColumnUse::kTarget) kind_ = Kind::kNumbers;
  if (use_ == ColumnUse::kLabel || use_ == ColumnUse::kSplit) kind_ = Kind::kCategories;
  if (use_ == ColumnUse::kFeature && is_listed_) kind_ = Kind::kCategories;
  feature_.decimal_comma = kind_ != Kind::kCategories && options.decimal == DecimalMark::kComma;
  words_are_classes_ = use_ == ColumnUse::kLabel && is_listed_;
}

TableColumn::TableColumn(const FeatureColumn& known, const ReadOptions& options, const RowPlace& place)
    : feature_(known),
      use_(ColumnUse::kFeature),
      options_(&options),
      place_(&place),
      kind_(known.categories.empty() ? Kind::kNumbers : Kind::kCategories),
      takes_comma_(known.decimal_comma),
      is_known_(true) {
  for (const std::string& category : known.categories) indices_.emplace(category, indices_.size());
}

void TableColumn::add(std::string_view field) {
  if (use_ == ColumnUse::kIgnored) return;
  field = trim(field);
  float value = std::numeric_limits<float>::quiet_NaN();
  if (field.empty() || (!words_are_classes_ && is_missing(field)))
    check_missing(field);
  else if (is_known_)
    value = known_value(field);
  else if (kind_ == Kind::kCategories || !read_number(field, value))
    value = category_of(field);
  values_.push_back(value);
}

void TableColumn::check_missing(std::string_view field) const {
  const bool is_feature = use_ == ColumnUse::kFeature;
  if (is_feature && options_->missing == MissingValues::kMean) return;
  const char* way_on = "";
  if (is_known_)
    way_on = "; a network that is to take such rows is trained with \"missing\": \"mean\"";
  else if (is_feature)
    way_on = "; with \"missing\": \"mean\" it becomes the column's mean";
  else if (use_ == ColumnUse::kLabel && !field.empty())
    way_on = "; if that is the name of a class, list the column under \"categorical\"";
  fail("the value is missing, as {}{}", shown_field(field), way_on);
}

// The value of a field as it was in training.
float TableColumn::known_value(std::string_view field) const {
  float value = -1;  // none of the categories
  bool has_comma = false;
  if (kind_ == Kind::kCategories) {
    if (const auto found = indices_.find(std::string(field)); found != indices_.end())
      value = static_cast<float>(found->second);
    else if (!feature_.one_hot || options_->unknown != UnknownCategory::kZeros)
      fail("{} was not there in training; allowed: {}", shown_field(field),
           listed_names(feature_.categories));
  } else if (feature_.decimal_comma && field.find('.') != std::string_view::npos) {
    fail("{} has a point, but those it was trained on have a decimal comma", shown_field(field));
  } else if (parse_number(field, value, takes_comma_, has_comma) != ParsedNumber::kNumber) {
    if (parse_number(field, value, true, has_comma) == ParsedNumber::kNumber)
      fail("{} has a comma, but those it was trained on have none", shown_field(field));
    fail("{} is not a finite number, as those it was trained on", shown_field(field));
  }
  return value;
}

// Returns false for text if no value has come before.
bool TableColumn::read_number(std::string_view field, float& number) {
  const ParsedNumber parsed = parse_number(field, number, takes_comma_, feature_.decimal_comma);
  if (parsed == ParsedNumber::kNumber && field.find('.') != std::string_view::npos) {
    if (!may_have_thousands(field))
      thousands_.clear();
    else if (!has_point_)
      thousands_ = field;
    has_point_ = true;
  }
  if (has_point_ && feature_.decimal_comma) {
    fail("{}: {}; write all alike, and thousands without a mark", shown_field(field),
         options_->decimal == DecimalMark::kComma
             ? "has a point, but \"decimal\" says that the decimal mark is a comma"
             : "some numbers of the column have a decimal point, others a comma");
  }
  if (kind_ == Kind::kUnknown) kind_ = parsed == ParsedNumber::kText ? Kind::kCategories : Kind::kNumbers;
  if (kind_ == Kind::kCategories) return false;
  if (parsed == ParsedNumber::kNotFinite) fail("{} is not a finite number of 32 bits", shown_field(field));
  if (parsed == ParsedNumber::kText) {
    fail("{} is not a number{}", shown_field(field),
         use_ == ColumnUse::kTarget
             ? "; classes are named by \"label\""
             : ", as the values before are; if they are names, list the column under \"categorical\"");
  }
  const double exact = exact_number(field, number);
  lowest_ = std::min(lowest_, exact);
  highest_ = std::max(highest_, exact);
  return true;
}

float TableColumn::category_of(std::string_view field) {
  std::vector<std::string>& categories = feature_.categories;
  if (use_ == ColumnUse::kFeature && !is_listed_) {
    float number = 0;
    bool has_comma = false;
    if (parse_number(field, number, takes_comma_, has_comma) == ParsedNumber::kNumber) ++numbers_;
    if (categories.empty()) first_place_ = *place_;
  }
  const auto [found, is_new] = indices_.try_emplace(std::string(field), categories.size());
  if (is_new) {
    if (!is_utf8(field)) fail("is not UTF-8; if it is Latin-1, set \"encoding\": \"latin-1\"");
    const bool is_feature = use_ == ColumnUse::kFeature;
    const std::size_t most =
        !is_feature ? kMaxTextClasses
                    : (options_->categories == Categories::kOneHot && is_listed_ ? kMaxOneHot : kMaxOrdinal);
    if (categories.size() == most) {
      fail("more than {} {}; the first value is {}; {}", most, is_feature ? "categories" : "classes",
           shown_field(categories.front()),
           is_feature ? "a column that only tells rows apart can be listed under \"ignore\""
                      : "numbers to be predicted are named by \"target\"");
    }
    categories.emplace_back(field);
  }
  return static_cast<float>(found->second);
}

void TableColumn::keep(std::size_t rows) { values_.resize(std::min(values_.size(), rows)); }

void TableColumn::finish() {
  if (is_known_ || kind_ != Kind::kCategories) return;
  feature_.decimal_comma = false;
  if (use_ == ColumnUse::kFeature && !is_listed_) refuse_numbers();
  feature_.one_hot = use_ == ColumnUse::kFeature && options_->categories == Categories::kOneHot;
  std::vector<std::string>& categories = feature_.categories;
  std::vector<std::size_t> order(categories.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const bool whole = std::ranges::all_of(
      categories, [](const auto& text) { return number_in<std::int64_t>(text).has_value(); });
  std::ranges::sort(order, {}, [&](std::size_t i) {
    return std::pair(whole ? *number_in<std::int64_t>(categories[i]) : 0, std::string_view(categories[i]));
  });
  std::vector<float> rank(order.size());
  std::vector<std::string> sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = static_cast<float>(i);
    sorted.push_back(std::move(categories[order[i]]));
  }
  categories = std::move(sorted);
  indices_.clear();
  for (float& value : values_) {
    if (!std::isnan(value)) value = rank[static_cast<std::size_t>(value)];
  }
}

// Throws if the categories are rather numbers, of which the first cannot be read.
void TableColumn::refuse_numbers() {
  const std::vector<std::string>& values = feature_.categories;
  const auto has_marks = [](const std::string& text) {
    float number = 0;
    return !problem_of_marks(text).empty() || parse_number(text, number) == ParsedNumber::kNumber;
  };
  const bool all_have_marks = !values.empty() && std::ranges::all_of(values, has_marks);
  if (!all_have_marks && (numbers_ == 0 || 10 * numbers_ < values_.size())) return;
  place_ = &first_place_;
  const std::string problem = all_have_marks
                                  ? problem_of_marks(values.front())
                                  : fmt::format("is not a number, as {} {}", counted(numbers_, "other value"),
                                                numbers_ == 1 ? "is" : "are");
  fail("{} {}; if they are names, list the column under \"categorical\"", shown_field(values.front()),
       problem);
}

bool TableColumn::holds_dates() const {
  return !feature_.categories.empty() && std::ranges::all_of(feature_.categories, is_date);
}

bool TableColumn::names_rows() const {
  if (use_ != ColumnUse::kFeature || is_known_ || is_listed_) return false;
  const std::size_t values = feature_.categories.size();
  return values > kFewCategories &&
         (values > values_.size() / 2 || holds_dates() || (feature_.one_hot && values > kMaxOneHot));
}

std::string TableColumn::unresolved_range() const {
  if (kind_ != Kind::kNumbers || !(lowest_ < highest_)) return "";
  const auto largest = static_cast<float>(std::max(std::abs(lowest_), std::abs(highest_)));
  const double step = static_cast<double>(std::nextafter(largest, std::numeric_limits<float>::infinity())) -
                      static_cast<double>(largest);
  if (highest_ - lowest_ >= kMinSteps * step) return "";
  return shortest(lowest_) + " to " + shortest(highest_);
}

bool TableColumn::is_constant() const {
  const auto present = [](float value) { return !std::isnan(value); };
  const auto first = std::ranges::find_if(values_, present);
  return std::all_of(first, values_.end(), [&](float value) { return std::isnan(value) || value == *first; });
}

std::vector<std::string> FeatureColumn::feature_names() const {
  if (!one_hot) return {name};
  std::vector<std::string> names;
  for (const std::string& category : categories) names.push_back(name + "=" + category);
  return names;
}

void TableColumn::write_features(std::size_t row, float* out) const {
  if (!feature_.one_hot) {
    *out = values_[row];
    return;
  }
  const bool missing = std::isnan(values_[row]);
  std::fill_n(out, feature_.categories.size(), missing ? values_[row] : 0.0f);
  if (values_[row] >= 0) out[static_cast<std::size_t>(values_[row])] = 1;
}

void TableColumn::check_no_ids(std::span<const TableColumn> columns, const std::string& name) {
  std::string refused;
  for (const TableColumn& column : columns) {
    if (!column.names_rows()) continue;
    const FeatureColumn& feature = column.feature_;
    refused += fmt::format("{}\"{}\" ({}{} values, as {})", refused.empty() ? "" : ", ", feature.name,
                           column.holds_dates() ? "dates, " : "", feature.categories.size(),
                           shown_field(feature.categories.front()));
  }
  if (!refused.empty()) {
    refuse(
        name,
        "these columns tell rows apart instead of describing them: {}. List them under \"ignore\", or under "
        "\"categorical\" if their values are categories",
        refused);
  }
}

void TableColumn::check(std::span<TableColumn> columns, const ReadOptions& options, const std::string& name,
                        std::vector<std::string>& notes) {
  check_no_ids(columns, name);
  // Where some columns have decimal commas, the points of others may separate thousands.
  const bool has_comma =
      std::ranges::any_of(columns, [](const TableColumn& column) { return column.feature_.decimal_comma; });
  std::vector<std::string> commas, constant;
  for (TableColumn& column : columns) {
    FeatureColumn& feature = column.feature_;
    if (has_comma && !column.thousands_.empty()) {
      refuse(
          name,
          "column \"{}\" has numbers such as \"{}\", and others have decimal commas: if its points separate "
          "thousands, take them out, else write commas",
          feature.name, column.thousands_);
    }
    // Samples and targets are float32, also before they are normalised.
    if (const std::string range = column.unresolved_range(); !range.empty()) {
      refuse(name,
             "column \"{}\" holds numbers from {}, of which float32 tells fewer than 256 apart: subtract a "
             "constant from them, or list the column under \"ignore\" or \"categorical\"",
             feature.name, range);
    }
    if (column.use_ != ColumnUse::kFeature) continue;
    if (feature.decimal_comma) commas.push_back(feature.name);
    // Another table may have commas where this one has whole numbers only.
    if (has_comma && column.kind_ == Kind::kNumbers && !column.has_point_) feature.decimal_comma = true;
    if (column.is_constant()) constant.push_back(feature.name);
  }
  if (!commas.empty() && options.decimal == DecimalMark::kAuto) {
    notes.push_back(
        fmt::format("{}: numbers with a decimal comma are in {}; \"decimal\": \".\" makes them text", name,
                    listed_names(commas, commas.size())));
  }
  if (constant.empty()) return;
  const bool is_one = constant.size() == 1;
  notes.push_back(
      fmt::format("{}: column{} the same value in all rows", name,
                  (is_one ? " " : "s ") + listed_names(constant, 20) + (is_one ? " has" : " each have")));
}

}  // namespace sweep
