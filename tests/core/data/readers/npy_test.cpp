// NumPy's files of arrays, and archives of them.

#include "core/data/readers/readers.h"
#include "tests/fuzz/file_readers.h"
#include "tests/support/data_files.h"
#include "tests/support/memory_file.h"

namespace sweep::npy_test {

using test::bytes_of, test::npy_file;

NamedArray parse(const std::string& content) {
  InputFile file = test::input_file(content);
  return read_npy(source_of(file));
}

std::vector<float> floats(const NamedArray& array) { return std::get<std::vector<float>>(array.values); }
std::vector<std::uint8_t> bytes(const NamedArray& array) {
  const auto& bytes = std::get<MaybeOwnedArray<std::uint8_t>>(array.values);
  return {bytes.begin(), bytes.end()};
}

TEST(ReadNpy, ReadsVersions2And3) {
  std::string file = npy_file("<f4", "(1,)", bytes_of<float>({5}));
  file[6] = 2;
  file.insert(10, std::string(2, '\0'));
  EXPECT_THAT(floats(parse(file)), ElementsAre(5));
  file[6] = 3;
  EXPECT_THAT(floats(parse(file)), ElementsAre(5));
  file[6] = 9;
  EXPECT_THAT(message_of<DataError>([&] { parse(file); }), HasSubstr("has version 9; allowed: 1 to 3"));
}

TEST(ReadNpy, ReadsTheInfinityOfHalves) {
  EXPECT_TRUE(std::isinf(floats(parse(npy_file("<f2", "(1,)", bytes_of<std::uint16_t>({0x7c00}))))[0]));
}

TEST(ReadNpy, ReadsMoreValuesThanFitIntoOnePiece) {
  std::vector<float> stored(100'000);
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<float>(i);
  EXPECT_EQ(floats(parse(npy_file("<f4", "(1000, 100)", bytes_of(stored)))), stored);
}

TEST(ReadNpz, ReadsStoredAndDeflatedMembers) {
  std::vector<float> values(50'000, 1.25f);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
  const test::TemporaryDirectory folder;
  const auto path =
      folder.write("x.npz", test::zip_file({{"x.npy", npy_file("<f4", "(500, 100)", bytes_of(values)), true},
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
  std::string file = test::zip_file({{"y.npy", npy, false}});
  const std::size_t entry = file.find("PK\1\2"), end = file.find("PK\5\6");
  std::string field("\1\0\x10\0", 4);
  field += test::little_endian(npy.size(), 8) + test::little_endian(npy.size(), 8);
  file[end + 12] = static_cast<char>(file[end + 12] + static_cast<char>(field.size()));
  file.replace(entry + 20, 8, std::string(8, '\xff'));
  file[entry + 30] = static_cast<char>(field.size());
  file.insert(end, field);
  const test::TemporaryDirectory folder;
  const std::filesystem::path path = folder.write("x.npz", file);
  EXPECT_THAT(bytes(read_npz(std::span(&path, 1), {}).arrays[0]), ElementsAre('a', 'b'));
}

// Archives that are damaged, dangerous or hold something else.

using test::zip_file;

std::string npz_error(const std::string& content) {
  return message_of<DataError>([&] { test::file_reader("npz").read(content); });
}

TEST(MalformedNpz, RefusesADirectoryThatLies) {
  const std::string npy = npy_file("|u1", "(4,)", "abcd");
  EXPECT_EQ(npz_error(zip_file({{"x.npy", npy, true}}, 1)),
            "FILE: x.npy: the archive is damaged or cut short: CRC error");
  EXPECT_THAT(npz_error(zip_file({{"x.npy", npy, true}}, 0, 1)), HasSubstr("is shorter than the directory"));
  EXPECT_THAT(npz_error(zip_file({{"x.npy", npy, false}}, 0, 1)), HasSubstr("a stored member has two sizes"));
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

TEST(MalformedNpz, RefusesWhatIsNoArray) {
  EXPECT_EQ(npz_error(zip_file({{"readme.txt", "hello", true}})),
            "FILE: holds \"readme.txt\", which is not an array (.npy)");
  EXPECT_THAT(npz_error(zip_file({{"x.npy", "hello", true}})), HasSubstr("x.npy: is not a NumPy array file"));
  const std::string npy = npy_file("|u1", "(4,)", "abcd");
  EXPECT_THAT(npz_error(zip_file({{"x.npy", npy, true}, {"x.npy", npy, true}})),
              HasSubstr("holds \"x.npy\" twice"));
  std::string other = zip_file({{"x.npy", npy, false}});
  other[other.find("PK\1\2") + 10] = 12;
  EXPECT_THAT(npz_error(other), HasSubstr("is compressed by method 12; allowed: stored and deflated"));
  other[other.find("PK\1\2") + 8] = 1;
  EXPECT_THAT(npz_error(other), HasSubstr("\"x.npy\" is encrypted"));
}

}  // namespace sweep::npy_test
