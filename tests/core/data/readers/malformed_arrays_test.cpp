// Array files and archives that are damaged, dangerous or hold something else.

#include "tests/fuzz/file_readers.h"
#include "tests/support/array_files.h"

#include "tests/support/test.h"

namespace sweep::malformed_arrays_test {

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

}  // namespace sweep::malformed_arrays_test
