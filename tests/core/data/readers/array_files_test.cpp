// Files of arrays: what is read of small ones, and one clear message for everything that is wrong.

#include "core/base/file.h"
#include "core/data/readers/readers.h"
#include "core/data/safetensors.h"
#include "tests/fuzz/file_readers.h"
#include "tests/support/file_rows.h"
#include "tests/support/memory_file.h"

namespace sweep::array_files_test {

using nlohmann::json;
using test::bytes_of, test::gzip, test::idx, test::npy_file, test::some_bytes, test::zip_file;

// The first array of a row's file; sets its digest.
NamedArray read(const json& row, std::string& sha256) {
  const std::string content = test::content_of(row), reader = row.at("reader");
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
