// How a person describes a data set, and how its files are to be read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/enum_names.h"

namespace sweep {

/// Which samples are split off for validation and test.
enum class SplitMethod {
  kAuto,       // kStratified where samples come class by class, as in a folder of images; otherwise kEnd
  kEnd,        // the last samples, in the order of the files
  kRandom,     // any samples, drawn by DatasetSpec::split_seed
  kStratified  // as kRandom, with the same fraction of every class
};

inline const EnumNames<SplitMethod>& split_method_names() {
  static const EnumNames<SplitMethod> names("split", {"auto", "end", "random", "stratified"});
  return names;
}

/// The treatment of table cells without a value, and of NaN in arrays.
enum class MissingValues {
  kError,  // the file is refused
  kMean    // NaN; whoever knows the training samples replaces it with fill_missing()
};

/// Where an array of images, [count, a, b, c], has its channels.
enum class ChannelOrder {
  kAuto,   // by its shape; one that does not say so is refused
  kFirst,  // [count, channels, height, width]
  kLast    // [count, height, width, channels]
};

/// The encoding of text columns as features.
enum class Categories {
  kOneHot,  // one feature per category, 0 or 1, named COLUMN=CATEGORY
  kOrdinal  // one feature: the index in the sorted list of categories
};

/// The mark before the fraction of a number.
enum class DecimalMark {
  kAuto,  // a point; a comma in columns that have it in a table that is not separated by commas
  kPoint,
  kComma
};

/// How a table's text is written. UTF-16 is known by the mark that it begins with.
enum class TextEncoding { kUtf8, kLatin1 };

/// How a category is read that was not there in training.
enum class UnknownCategory {
  kError,  // its row is refused
  kZeros   // none of the features of its column is 1
};

/// A column of a table that became features: other tables are read for the same network by it.
struct FeatureColumn {
  std::string name;
  std::vector<std::string> categories{};  // in order; empty: the column holds numbers
  bool one_hot = false;                   // a feature per category, else one
  bool decimal_comma = false;             // of its numbers
  /// How many features it became.
  std::size_t features() const { return one_hot ? categories.size() : 1; }
  /// Their names: its own, or COLUMN=CATEGORY.
  std::vector<std::string> feature_names() const;
  friend bool operator==(const FeatureColumn&, const FeatureColumn&) = default;
};

/// Input normalisation, as torchvision.transforms.Normalize: x = (v − mean[c]) / std[c] for channel c, where
/// v is byte / 255 or the float itself. Samples of [features] have a channel per feature. Both are
/// [channels], or both are empty: x = v.
struct InputTransform {
  std::vector<float> mean = {};
  std::vector<float> std = {};  // > 0
  friend bool operator==(const InputTransform&, const InputTransform&) = default;
};

/// Where an InputTransform comes from that is not given.
enum class Normalization {
  kAuto,  // kTrain for a table, else kNone
  kNone,  // samples stay as they are
  kTrain  // mean and deviation of the training samples: per channel, or per feature of samples of [features]
};

/// A data set as the sweep file describes it.
struct DatasetSpec {
  std::string name{};  // "fashion-mnist", "mnist", "cifar10", "cifar100", or any name with a path
  /// A folder, a file, or a glob(7) pattern of files; empty: load_dataset() searches for it.
  std::filesystem::path path{};
  std::string format{};  // a name of data_formats(); empty: recognised by content
  /// Size of the validation set: a number of samples, or a fraction in [0, 1) of the training samples of the
  /// source, 0 or at least one sample. They are taken from the training samples, as `split` says, before
  /// `limit` applies.
  std::variant<std::size_t, double> validation = std::size_t{0};
  /// Size of the test set, likewise; 0 for a source that has one.
  std::variant<std::size_t, double> test = std::size_t{0};
  SplitMethod split = SplitMethod::kAuto;
  std::uint64_t split_seed = 0;  // of kRandom and kStratified
  /// Uses only the first `limit` samples of each of training, validation and test; 0: all. The validation
  /// samples are therefore the same ones for every size of the training set.
  std::size_t limit = 0;
  /// Image folders: [height, width] of the samples, each >= 1; none: all images have one size already.
  std::optional<std::array<std::int64_t, 2>> resize{};
  bool grayscale = false;              // image folders: one channel instead of three
  std::string label{};                 // the column or array of the classes; empty: found by its usual names
  std::vector<std::string> targets{};  // the columns, or the array, of numbers to be predicted
  MissingValues missing = MissingValues::kError;
  Categories categories = Categories::kOneHot;
  DecimalMark decimal = DecimalMark::kAuto;
  std::optional<TextEncoding> encoding = TextEncoding::kUtf8;  // none: found out
  UnknownCategory unknown = UnknownCategory::kError;
  ChannelOrder channels = ChannelOrder::kAuto;  // of arrays
  std::vector<std::string> categorical{};       // columns of numbers that are names, such as postcodes
  std::vector<std::string> ignore{};            // columns to leave out, such as row numbers
  Normalization normalization = Normalization::kAuto;
  InputTransform transform{};  // given; empty: as `normalization` says
  friend bool operator==(const DatasetSpec&, const DatasetSpec&) = default;
};

/// What a reader is told. It uses the keys that its description names, and ignores the others.
struct ReadOptions : DatasetSpec {
  std::filesystem::path cache{};         // the folder of decoded images; empty: none
  std::vector<FeatureColumn> columns{};  // that a network was trained on; empty: those that are found
  bool unlabelled = false;               // with `columns`: no targets are read
  unsigned threads = 0;                  // 0: all cores that the process may use
};

}  // namespace sweep
