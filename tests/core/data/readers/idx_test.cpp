// IDX files: what is read, and one clear message for everything that is wrong.
#include "core/data/readers/readers.h"

#include "tests/support/data_files.h"
#include "tests/support/memory_file.h"

namespace sweep::idx_test {

using test::gzip, test::idx, test::some_bytes;

struct IdxFile {
  Shape extents;
  std::vector<std::uint8_t> values;
  std::string sha256;
};

IdxFile parse(const std::string& content, std::size_t dimensions) {
  InputFile file = test::input_file(content);
  NamedArray array = read_idx(file, dimensions);
  return {array.shape, std::get<0>(array.values).edit(), file.sha256()};
}

std::string parse_error(const std::string& content, std::size_t dimensions) {
  return message_of<DataError>([&] { parse(content, dimensions); });
}

TEST(Sha256, MatchesTheExamplesOfFips180) {
  const auto digest = [](std::string_view text) {
    Sha256 sha;
    for (const char c : text) sha.update(std::span(reinterpret_cast<const std::uint8_t*>(&c), 1));
    return sha.finish();
  };
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(ReadIdx, GivesTheSameForPlainAndCompressedContent) {
  // Larger than any buffer inside, so that pieces have to be put together.
  const std::string plain = idx({1000, 31, 33}, some_bytes(1000 * 31 * 33));
  const IdxFile a = parse(plain, 3);
  const IdxFile b = parse(gzip(plain), 3);
  EXPECT_EQ(a.extents, b.extents);
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.sha256, b.sha256);
  EXPECT_EQ(std::string(a.values.begin(), a.values.end()), some_bytes(1000 * 31 * 33));
}

TEST(ReadIdx, ReadsGzipMembersOneAfterAnother) {
  const std::string plain = idx({2, 2, 2}, "abcdefgh");
  EXPECT_EQ(parse(gzip(plain.substr(0, 10)) + gzip(plain.substr(10)), 3).values, parse(plain, 3).values);
}

TEST(ReadIdx, HashesTheDecompressedContent) {
  // printf '\0\0\10\1\0\0\0\3abc' | sha256sum
  const std::string digest = "379a7afbfd9f0de0a36184463dd209c260f4582821ea2e5e4c40c7eb713dbda2";
  EXPECT_EQ(parse(idx({3}, "abc"), 1).sha256, digest);
  EXPECT_EQ(parse(gzip(idx({3}, "abc")), 1).sha256, digest);
}

TEST(ReadIdx, SaysWhatIsWrongWithCompressedContent) {
  EXPECT_THAT(parse_error(gzip(idx({3}, "abc")) + "x", 1), HasSubstr("something that is not gzip follows"));
  std::string damaged = gzip(idx({3}, "abc"));
  damaged[10] = '\7';  // no type of block
  EXPECT_THAT(parse_error(damaged, 1), HasSubstr("the compressed data is damaged: "));
}

TEST(ReadIdxDataset, NamesAFileThatCannotBeOpened) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() / "nowhere";
  EXPECT_EQ(message_of<DataError>([&] { read_idx_dataset(std::span(&path, 1), {}); }),
            path.string() + ": cannot open: No such file or directory");
}

TEST(ReadIdxDataset, ReadsAFileOfImagesAlone) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path path = directory.write("new", idx({2, 1, 3}, "abcdef"));
  EXPECT_TRUE(is_idx(path));
  EXPECT_FALSE(is_idx(directory.write("labels", idx({3}, "abc"))));
  const DataArrays data = read_idx_dataset(std::span(&path, 1), {});
  ASSERT_EQ(data.arrays.size(), 1u);
  EXPECT_EQ(data.arrays[0].name, "images");
}

TEST(ReadIdx, TakesNoMemoryForContentFarLargerThanItsFile) {
  // 200 kB that do not shrink, and a header that promises as much as they could be expanded to.
  const std::string file = test::gzip(test::idx({200, 1000, 1000}, test::some_bytes(200'000)));
  EXPECT_THAT(message_of<DataError>([&] {
                InputFile small = test::input_file(file, "small.gz");
                read_idx(small, 3);
              }),
              HasSubstr("which a file of this size cannot hold"));
}

}  // namespace sweep::idx_test
