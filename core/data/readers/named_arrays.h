// What every reader gives: arrays with names, and where they came from.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/maybe_owned_array.h"
#include "core/base/shape.h"
#include "core/data/readers/dataset_spec.h"

namespace sweep {

class MappedFile;

/// A file that was read, or a folder of images as a whole; recorded with a run.
struct DataFile {
  std::filesystem::path path;
  /// 64 hexadecimal digits: of the decompressed content, unless the reader's header says otherwise.
  std::string sha256;
};

/// A file that was passed over.
struct SkippedFile {
  std::filesystem::path path;
  std::string reason;
  bool unread = false;  // it could not be read, which may pass
};

/// Row-major. uint8 are bytes; floats, and other integers with more than one value per sample, are float32;
/// all other integers, labels above all, are int64. bool are integers, 0 and 1. Bytes may be those of a
/// mapped file.
using ArrayValues =
    std::variant<MaybeOwnedArray<std::uint8_t>, std::vector<float>, std::vector<std::int64_t>>;

struct NamedArray {
  std::string name;
  Shape shape;
  ArrayValues values;
  std::string where = {};      // starts messages about it; empty: the source's name, and its own
  std::string problem = {};    // why it has no values, which matters only if they are needed
  bool were_integers = false;  // its floats, before they were converted
};

/// A part of a data set, and the words for it: at the beginning or end of an array's name, in a table's
/// column "split", of a table's file or a folder of images.
enum DataPart : std::uint8_t { kTrainPart, kValidationPart, kTestPart };
inline constexpr std::array<const char*, 3> kPartNames = {"train", "validation", "test"};
inline constexpr std::pair<std::string_view, DataPart> kPartWords[] = {
    {"train", kTrainPart},      {"training", kTrainPart}, {"validation", kValidationPart},
    {"valid", kValidationPart}, {"val", kValidationPart}, {"test", kTestPart},
    {"testing", kTestPart}};
/// The part that `word`, in upper or lower case, is for, if any.
std::optional<DataPart> part_called(std::string_view word);

/// A source: its arrays, called as data_from_arrays() says.
struct DataArrays {
  std::vector<NamedArray> arrays;
  std::vector<std::string> class_names = {};   // of targets that are classes; empty: "0", "1", …
  std::vector<std::string> target_names = {};  // of targets that are numbers; empty: those of their array
  std::vector<FeatureColumn> columns = {};     // of a table: what became the features of its samples
  std::vector<std::size_t> lines = {};  // of a table for a trained network: where each row starts, from 1
  std::shared_ptr<const MappedFile> mapping = nullptr;  // where borrowed bytes lie
  std::vector<DataFile> files = {};
  std::vector<SkippedFile> skipped = {};  // to be shown: nothing is passed over silently
  std::vector<std::string> notes = {};    // for the user, one line each: a constant column, for example
};

}  // namespace sweep
