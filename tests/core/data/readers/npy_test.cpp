// Array files: each type of values, either byte order, C and Fortran order.
#include "core/data/readers/readers.h"

#include "tests/support/array_files.h"
#include "tests/support/idx_files.h"
#include "tests/support/memory_file.h"
#include "tests/support/test.h"

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

}  // namespace sweep::npy_test
