// Files of arrays: what is read of small ones, and one clear message for everything that is wrong.

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/data/readers/readers.h"
#include "core/data/safetensors.h"
#include "tests/fuzz/file_readers.h"
#include "tests/support/data_files.h"
#include "tests/support/memory_file.h"

namespace sweep::array_files_test {

using nlohmann::json;
using test::bytes_of, test::from_hex, test::gzip, test::idx, test::npy_file, test::some_bytes, test::zip_file;

// `tensors`: the name, type, shape and values of each, one after another.
std::string tensors_file(const json& tensors) {
  json header;
  std::string data;
  for (const json& tensor : tensors) {
    const std::size_t begin = data.size();
    data += from_hex(tensor.at(3));
    header[tensor.at(0).get<std::string>()] = {{"dtype", tensor.at(1)},
                                               {"shape", json::parse(tensor.at(2).get<std::string>())},
                                               {"data_offsets", {begin, data.size()}}};
  }
  return test::safetensors_file(header.dump(), data);
}

// The file of a row: its format's header, or none, before the values, as "data" or in "hex"; or an archive;
// changed.
std::string content_of(const json& row) {
  const std::string data = row.value("data", "") + from_hex(row.value("hex", ""));
  std::string content = data;
  if (row.contains("npy"))
    content = npy_file(row.at("npy").at(0), row.at("npy").at(1), data, row.value("fortran", false));
  if (row.contains("idx")) content = idx(row.at("idx"), data);
  if (row.contains("header")) content = test::safetensors_file(row.at("header"), data);
  if (row.contains("tensors")) content = tensors_file(row.at("tensors"));
  if (row.contains("zip")) {
    std::vector<test::ZipMember> members;
    for (const json& member : row.at("zip"))
      members.push_back({member.at(0), content_of(member.at(1)), member.at(2)});
    content = zip_file(members, row.value("crc", 0u), row.value("size", 0u));
  }
  if (row.contains("replace")) {
    const std::string from = row.at("replace").at(0);
    content.replace(content.find(from), from.size(), row.at("replace").at(1).get<std::string>());
  }
  content.resize(content.size() - row.value("cut", std::size_t{0}));
  content += row.value("after", "");
  if (row.contains("gzip")) {  // in two members, of which the first has so many bytes, or in one
    const std::size_t first = row.at("gzip").is_number() ? row.at("gzip").get<std::size_t>() : 0;
    content = (first > 0 ? gzip(content.substr(0, first)) : "") + gzip(content.substr(first));
  }
  if (row.contains("set")) {  // a byte after some text
    const json& set = row.at("set");
    content.at(content.find(set.at(0).get<std::string>()) + set.at(1).get<std::size_t>()) =
        static_cast<char>(set.at(2).get<int>());
  }
  return content + row.value("after_all", "");
}

// The first array of a row's file; sets its digest.
NamedArray read(const json& row, std::string& sha256) {
  const std::string content = content_of(row), reader = row.at("reader");
  if (reader == "weights") {
    const NamedTensor tensor = parse_safetensors(content, "FILE").tensors.at(0);
    return {tensor.name, tensor.shape, tensor.values};
  }
  if (reader == "npz") {
    test::file_reader("npz").read(content);
    const test::MemoryFile file(content);
    const std::filesystem::path path = file.path();
    return read_npz(std::span(&path, 1), {}).arrays.at(0);
  }
  InputFile file = test::input_file(content);
  NamedArray array = reader == "npy"   ? read_npy(source_of(file))
                     : reader == "idx" ? read_idx(file, row.at("dimensions"))
                                       : read_safetensors_arrays(file).at(0);
  sha256 = file.sha256();
  if (!array.problem.empty()) throw DataError(array.problem);
  return array;
}

void expect_array(const NamedArray& array, const json& gives) {
  EXPECT_EQ(array.name, gives.value("name", array.name));
  EXPECT_EQ(array.shape, gives.value("shape", array.shape));
  const char* const type = std::array{"bytes", "floats", "integers"}.at(array.values.index());
  ASSERT_TRUE(gives.contains(type)) << type;
  std::visit(
      [&](const auto& values) {
        using Values = std::vector<std::decay_t<decltype(*values.begin())>>;
        EXPECT_EQ(Values(values.begin(), values.end()), gives.at(type).get<Values>());
      },
      array.values);
}

// A row of array_files.json: a file, what its reader gives of its first array, or the whole "message" or a
// part that it "has".
TEST(ArrayFile, GivesWhatItsRowSays) {
  const json rows = json::parse(read_file(SWEEP_TEST_DATA "/array_files.json"));
  ASSERT_GE(rows.size(), 137u);
  for (const json& row : rows) {
    SCOPED_TRACE(row.dump());
    std::string sha256;
    if (row.contains("gives")) {
      expect_array(read(row, sha256), row.at("gives"));
      EXPECT_EQ(sha256, row.at("gives").value("sha256", sha256));
    } else {
      const std::string message = message_of<DataError>([&] { read(row, sha256); });
      EXPECT_EQ(message, row.value("message", message));
      EXPECT_THAT(message, HasSubstr(row.value("has", "")));
    }
  }
}

NamedArray parse(const std::string& content) {
  InputFile file = test::input_file(content);
  return read_npy(source_of(file));
}

std::vector<float> floats(const NamedArray& array) { return std::get<std::vector<float>>(array.values); }
std::vector<std::uint8_t> bytes(const NamedArray& array) {
  const auto& bytes = std::get<MaybeOwnedArray<std::uint8_t>>(array.values);
  return {bytes.begin(), bytes.end()};
}

TEST(ReadIdx, GivesTheSameForPlainAndCompressedContent) {
  // Larger than any buffer inside, so that pieces have to be put together.
  const std::string pixels = some_bytes(1000 * 31 * 33), plain = idx({1000, 31, 33}, pixels);
  std::vector<std::string> digests;
  for (const std::string& content : {plain, gzip(plain)}) {
    InputFile file = test::input_file(content);
    const NamedArray array = read_idx(file, 3);
    EXPECT_EQ(array.shape, (Shape{1000, 31, 33}));
    const std::vector<std::uint8_t> found = bytes(array);
    EXPECT_TRUE(std::string(found.begin(), found.end()) == pixels);
    digests.push_back(file.sha256());
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(ReadIdxDataset, ReadsAFileOfImagesAlone) {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory.write("new", idx({2, 1, 3}, "abcdef"));
  EXPECT_TRUE(is_idx(path));
  EXPECT_FALSE(is_idx(directory.write("labels", idx({3}, "abc"))));
  const DataArrays data = read_idx_dataset(std::span(&path, 1), {});
  ASSERT_EQ(data.arrays.size(), 1u);
  EXPECT_EQ(data.arrays[0].name, "images");
}

TEST(ReadIdx, TakesNoMemoryForContentFarLargerThanItsFile) {
  // 200 kB that do not shrink, and a header that promises as much as they could be expanded to.
  const std::string file = gzip(idx({200, 1000, 1000}, some_bytes(200'000)));
  EXPECT_THAT(message_of<DataError>([&] {
                InputFile small = test::input_file(file, "small.gz");
                read_idx(small, 3);
              }),
              HasSubstr("which a file of this size cannot hold"));
}

TEST(ReadNpy, ReadsMoreValuesThanFitIntoOnePiece) {
  std::vector<float> stored(100'000);
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<float>(i);
  EXPECT_EQ(floats(parse(npy_file("<f4", "(1000, 100)", bytes_of(stored)))), stored);
}

TEST(ReadNpy, ReadsTheInfinityOfHalves) {
  EXPECT_TRUE(std::isinf(floats(parse(npy_file("<f2", "(1,)", bytes_of<std::uint16_t>({0x7c00}))))[0]));
}

TEST(ReadNpz, ReadsStoredAndDeflatedMembers) {
  std::vector<float> values(50'000, 1.25f);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
  const TemporaryDirectory folder;
  const auto path =
      folder.write("x.npz", zip_file({{"x.npy", npy_file("<f4", "(500, 100)", bytes_of(values)), true},
                                      {"y.npy", npy_file("|u1", "(2,)", "ab"), false}}));
  const DataArrays data = read_npz(std::span(&path, 1), {});
  const std::vector<NamedArray>& arrays = data.arrays;
  EXPECT_EQ(data.files.at(0).sha256.size(), 64u);
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].name, "x");
  EXPECT_EQ(floats(arrays[0]), values);
  EXPECT_EQ(arrays[1].name, "y");
  EXPECT_THAT(bytes(arrays[1]), ElementsAre('a', 'b'));
}

TEST(ReadNpz, ReadsLargeArchives) {
  // As numpy writes sizes that might pass 4 GiB: 0xffffffff in the entry, the value in its zip64 field.
  const std::string npy = npy_file("|u1", "(2,)", "ab");
  std::string file = zip_file({{"y.npy", npy, false}});
  const std::size_t entry = file.find("PK\1\2"), end = file.find("PK\5\6");
  std::string field("\1\0\x10\0", 4);
  field += test::little_endian(npy.size(), 8) + test::little_endian(npy.size(), 8);
  file[end + 12] = static_cast<char>(file[end + 12] + static_cast<char>(field.size()));
  file.replace(entry + 20, 8, std::string(8, '\xff'));
  file[entry + 30] = static_cast<char>(field.size());
  file.insert(end, field);
  const TemporaryDirectory folder;
  const std::filesystem::path path = folder.write("x.npz", file);
  EXPECT_THAT(bytes(read_npz(std::span(&path, 1), {}).arrays[0]), ElementsAre('a', 'b'));
}

std::string npz_error(const std::string& content) {
  return message_of<DataError>([&] { test::file_reader("npz").read(content); });
}

TEST(MalformedNpz, RefusesBombs) {
  const std::size_t count = std::size_t{20} << 20;
  const std::string npy = npy_file("|u1", "(" + std::to_string(count) + ",)", std::string(count, '\0'));
  EXPECT_EQ(
      npz_error(zip_file({{"x.npy", npy, true}})),
      "FILE: x.npy: expands to more than 100 times its size: such data is refused as a decompression bomb");
}

TEST(MalformedNpz, RefusesOverlappingMembers) {
  std::string file = zip_file({{"x.npy", npy_file("|u1", "(900,)", std::string(900, 'a')), false}});
  const std::size_t entry = file.find("PK\1\2"), end = file.find("PK\5\6");
  std::string second = file.substr(entry, end - entry);
  second[second.find("x.npy")] = 'y';
  file[end + 8] = file[end + 10] = 2;
  file[end + 12] = static_cast<char>(2 * second.size());
  file.insert(end, second);
  EXPECT_EQ(npz_error(file), "FILE: the archive is damaged: its members overlap");
}

}  // namespace sweep::array_files_test
