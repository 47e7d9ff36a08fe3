// Array files: each type of values, either byte order, C and Fortran order.

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
std::vector<std::int64_t> integers(const NamedArray& array) {
  return std::get<std::vector<std::int64_t>>(array.values);
}
std::vector<std::uint8_t> bytes(const NamedArray& array) {
  const auto& bytes = std::get<MaybeOwnedArray<std::uint8_t>>(array.values);
  return {bytes.begin(), bytes.end()};
}

TEST(ReadNpy, KeepsBytes) {
  const NamedArray array = parse(npy_file("|u1", "(2, 3)", "abcdef"));
  EXPECT_EQ(array.shape, (Shape{2, 3}));
  EXPECT_THAT(bytes(array), ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
}

TEST(ReadNpy, TakesBoolForTheNumbers0And1) {
  EXPECT_THAT(integers(parse(npy_file("|b1", "(2,)", std::string("\1\0", 2)))), ElementsAre(1, 0));
  EXPECT_THAT(floats(parse(npy_file("|b1", "(1, 2)", std::string("\1\0", 2)))), ElementsAre(1, 0));
}

TEST(ReadNpy, ReadsFloats) {
  EXPECT_THAT(floats(parse(npy_file("<f4", "(2,)", bytes_of<float>({1.5f, -2})))), ElementsAre(1.5f, -2));
  EXPECT_THAT(floats(parse(npy_file("<f8", "(2,)", bytes_of<double>({0.1, 1e-300})))), ElementsAre(0.1f, 0));
  // IEEE 754 halves: 1, -2, the largest, the smallest.
  EXPECT_THAT(
      floats(parse(npy_file("<f2", "(4,)", bytes_of<std::uint16_t>({0x3c00, 0xc000, 0x7bff, 0x0001})))),
      ElementsAre(1, -2, 65504, std::ldexp(1.0f, -24)));
  EXPECT_TRUE(std::isinf(floats(parse(npy_file("<f2", "(1,)", bytes_of<std::uint16_t>({0x7c00}))))[0]));
}

TEST(ReadNpy, ReadsIntegersOfEverySize) {
  EXPECT_THAT(integers(parse(npy_file("|i1", "(2,)", bytes_of<std::int8_t>({-3, 4})))), ElementsAre(-3, 4));
  EXPECT_THAT(integers(parse(npy_file("<i2", "(2,)", bytes_of<std::int16_t>({-300, 4})))),
              ElementsAre(-300, 4));
  EXPECT_THAT(integers(parse(npy_file("<u2", "(1,)", bytes_of<std::uint16_t>({65535})))), ElementsAre(65535));
  EXPECT_THAT(integers(parse(npy_file("<i4", "(1, 1)", bytes_of<std::int32_t>({-70000})))),
              ElementsAre(-70000));
  EXPECT_THAT(integers(parse(npy_file("<u4", "(1,)", bytes_of<std::uint32_t>({4000000000u})))),
              ElementsAre(4000000000));
  EXPECT_THAT(integers(parse(npy_file("<i8", "(1,)", bytes_of<std::int64_t>({-1})))), ElementsAre(-1));
  EXPECT_THAT(floats(parse(npy_file("<i8", "(1, 2)", bytes_of<std::int64_t>({-1, 7})))), ElementsAre(-1, 7));
}

TEST(ReadNpy, SwapsBytes) {
  EXPECT_THAT(integers(parse(npy_file(">i4", "(2,)", std::string("\0\0\1\2\xff\xff\xff\xff", 8)))),
              ElementsAre(258, -1));
  EXPECT_THAT(floats(parse(npy_file(">f4", "(1,)", std::string("\x3f\xc0\0\0", 4)))), ElementsAre(1.5f));
}

TEST(ReadNpy, PutsFortranOrderIntoCOrder) {
  // As numpy.asfortranarray([[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], [[12, …]]]) is stored.
  std::vector<float> stored;
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) stored.push_back(static_cast<float>(i * 12 + j * 4 + k));
    }
  }
  const std::vector<float> values = floats(parse(npy_file("<f4", "(2, 3, 4)", bytes_of(stored), true)));
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<float>(i));
}

TEST(ReadNpy, ReadsVersions2And3) {
  std::string file = npy_file("<f4", "(1,)", bytes_of<float>({5}));
  file[6] = 2;
  file.insert(10, std::string(2, '\0'));
  EXPECT_THAT(floats(parse(file)), ElementsAre(5));
  file[6] = 3;
  EXPECT_THAT(floats(parse(file)), ElementsAre(5));
}

TEST(ReadNpy, ReadsCompressedFiles) {
  EXPECT_THAT(floats(parse(test::gzip(npy_file("<f4", "(1,)", bytes_of<float>({5}))))), ElementsAre(5));
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

// Array files and archives that are damaged, dangerous or hold something else.

using test::bytes_of, test::npy_file, test::zip_file;

std::string npy_error(const std::string& content) {
  return message_of<DataError>([&] { test::file_reader("npy").read(content); });
}
std::string npz_error(const std::string& content) {
  return message_of<DataError>([&] { test::file_reader("npz").read(content); });
}

TEST(MalformedNpy, RefusesPythonObjects) {
  EXPECT_EQ(npy_error(npy_file("|O", "(2,)", "pickled")),
            "FILE: holds Python objects, which are never loaded, as they could run programs; allowed: bool, "
            "integers, "
            "float16, float32, float64");
}

TEST(MalformedNpy, RefusesOtherTypes) {
  for (const char* type : {"<c8", "<U4", "|S3", "<f16", "<M8[ns]", "", "<", "f", "|V8"}) {
    EXPECT_THAT(npy_error(npy_file(type, "(2,)", "............")), HasSubstr("holds values of type \""))
        << type;
  }
  std::string fields = npy_file("<f4", "(2,)", "12345678");
  fields.replace(fields.find("'<f4'"), 5, "[('a'");
  EXPECT_THAT(npy_error(fields), HasSubstr("holds structures with fields"));
}

TEST(MalformedNpy, RefusesShapesThatTheFileCannotHold) {
  EXPECT_EQ(npy_error(npy_file("<f4", "(2, 2)", "123456789012345")),
            "FILE: is cut short: its header promises [2, 2] = 4 values of 4 bytes");
  EXPECT_THAT(npy_error(npy_file("<f4", "(1000000000000,)", "abcd")),
              HasSubstr("which a file of this size cannot hold"));
  EXPECT_THAT(npy_error(npy_file("<f4", "(4294967296, 4294967296, 16)", "abcd")),
              HasSubstr("which a file of this size cannot hold"));
  EXPECT_THAT(npy_error(npy_file("<f4", "(3, 0)", "")), HasSubstr("holds nothing: its shape is [3, 0]"));
  EXPECT_THAT(npy_error(npy_file("<f4", "()", "abcd")),
              HasSubstr("holds a single number, expected an array"));
  EXPECT_THAT(npy_error(npy_file("<f4", "(-1,)", "abcd")),
              HasSubstr("the header is damaged: expected an extent"));
  EXPECT_THAT(npy_error(npy_file("<f4", "(1,1,1,1,1,1,1,1,1)", "abcd")),
              HasSubstr("has more than 8 dimensions"));
}

TEST(MalformedNpy, RefusesDamagedHeaders) {
  const std::string file = npy_file("<f4", "(1,)", "abcd");
  EXPECT_THAT(npy_error("PK" + file), HasSubstr("is not a NumPy array file"));
  std::string version = file;
  version[6] = 9;
  EXPECT_THAT(npy_error(version), HasSubstr("has version 9; allowed: 1 to 3"));
  std::string brace = file;
  brace[10] = '[';
  EXPECT_THAT(npy_error(brace), HasSubstr("the header is damaged: expected '{'"));
  std::string key = file;
  key.replace(key.find("shape"), 5, "shope");
  EXPECT_THAT(npy_error(key), HasSubstr("the header has an unknown key \"shope\""));
}

TEST(MalformedNpy, RefusesNumbersThatDoNotFit) {
  EXPECT_THAT(npy_error(npy_file("<f8", "(1,)", bytes_of<double>({1e300}))),
              HasSubstr("is too large for float32"));
  EXPECT_THAT(npy_error(npy_file("<u8", "(1,)", std::string(8, '\xff'))), HasSubstr("more than 63 bits"));
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
