// Files of each format that are cut, have a flipped byte or something after their end: a DataError or a right
// result, and nothing else. tests/tools/damaged_data_test.cpp has what a person sees of that.

#include "tests/fuzz/file_readers.h"
#include "tests/support/image_files.h"

namespace sweep::damaged_files_test {

using test::bytes_of;

struct WholeFile {
  std::string name, reader, bytes;
  std::size_t needed_from = 0;  // shorter ones are refused …
  std::size_t not_needed = 0;   // … but for so many bytes at the end
  bool may_be_longer = false;
  std::size_t checked = 0;                       // every change of so many bytes at the beginning is refused,
  std::size_t refused_from = std::string::npos;  // and of this byte and all after it
  char options = '\0';
};
void PrintTo(const WholeFile& file, std::ostream* out) { *out << file.name; }

class DamagedFile : public testing::TestWithParam<WholeFile> {
 protected:
  void read(const std::string& bytes) const {
    const test::FileReader& reader = test::file_reader(GetParam().reader);
    reader.read(reader.has_options ? GetParam().options + bytes : bytes);
  }
  // Whether it is refused, with a message of one line.
  bool is_refused(const std::string& bytes) const {
    try {
      read(bytes);
      return false;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), AllOf(StartsWith("FILE: "), Not(HasSubstr("\n"))));
      return true;
    }
  }
};

TEST_P(DamagedFile, IsRefusedWhereverItIsCut) {
  const std::string& whole = GetParam().bytes;
  EXPECT_NO_THROW(read(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const bool is_refused_now = is_refused(whole.substr(0, size));
    const bool is_needed = size >= GetParam().needed_from && size + GetParam().not_needed < whole.size();
    EXPECT_TRUE(is_refused_now || !is_needed) << size;
  }
  EXPECT_TRUE(is_refused(whole + "junk") || GetParam().may_be_longer);
}

TEST_P(DamagedFile, IsRefusedOrReadWithAnyByteFlipped) {
  const std::string& whole = GetParam().bytes;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int mask : {0x01, 0x04, 0x10, 0x80, 0xff}) {
      const bool is_refused_now = is_refused(flipped(whole, i, mask));
      EXPECT_TRUE(is_refused_now || (i >= GetParam().checked && i < GetParam().refused_from))
          << "byte " << i << " mask " << mask;
    }
  }
}

std::string small_image() { return test::idx({7, 5, 3}, test::some_bytes(105)); }
std::string small_npy() { return test::npy_file("<f4", "(2, 2)", bytes_of<float>({1, 2, 3, 4})); }
std::string small_tensors(const std::string& label_type, std::size_t label_bytes) {
  const std::string end = std::to_string(8 + 2 * label_bytes);
  return test::safetensors_file(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"y":{"dtype":")" +
                                    label_type + R"(","shape":[2],"data_offsets":[8,)" + end +
                                    R"(]},"__metadata__":{"a":"b"}})",
                                bytes_of<float>({1, 2}) + std::string(2 * label_bytes, '\0'));
}
std::string small_npz(bool deflated) {
  return test::zip_file({{"x.npy", small_npy(), deflated},
                         {"y.npy", test::npy_file("|u1", "(2,)", std::string("\0\1", 2)), deflated}});
}
test::Pixels noise(unsigned side) {
  return test::make_pixels(side, side, 3, [](unsigned y, unsigned x, unsigned c) { return y * x * (c + 3); });
}

std::vector<WholeFile> whole_files() {
  const std::string table = "x,label\n1,a\n2,\"b\n\"\n", png = test::png_file(noise(12)),
                    jpeg = test::jpeg_file(noise(20)),
                    progressive = test::jpeg_file(noise(20), {.progressive = true});
  std::vector<WholeFile> files = {
      {.name = "Idx", .reader = "idx", .bytes = small_image(), .checked = 16},
      {.name = "Cifar", .reader = "cifar", .bytes = std::string(3073, '\1')},
      {.name = "Table", .reader = "csv", .bytes = table, .needed_from = table.size(), .may_be_longer = true},
      {.name = "Npy", .reader = "npy", .bytes = small_npy(), .checked = 6},
      {.name = "Tensors", .reader = "safetensors_data", .bytes = small_tensors("U8", 1)}};
  for (std::size_t i = files.size(); i-- > 0;) {
    WholeFile packed = files[i];
    packed.name += "Packed";
    packed.bytes = test::gzip(packed.bytes);
    packed.needed_from = packed.checked = 0;
    // Its bytes do not shrink, so they are stored: byte 10 begins that block, with five bits of padding.
    // Bytes 0 to 9 are gzip's header, which has some without a meaning here (time stamp, operating system).
    if (packed.reader == "idx") packed.refused_from = 11;
    packed.may_be_longer = false;
    files.push_back(packed);
  }
  // What follows the directory of an archive is a comment.
  files.push_back({.name = "Npz", .reader = "npz", .bytes = small_npz(false), .may_be_longer = true});
  files.push_back({.name = "NpzDeflated", .reader = "npz", .bytes = small_npz(true), .may_be_longer = true});
  files.push_back({.name = "Weights", .reader = "safetensors", .bytes = small_tensors("I64", 8)});
  // The end of a picture may be missing, and there may be more after it.
  files.push_back({.name = "Png", .reader = "image", .bytes = png, .not_needed = 16, .may_be_longer = true});
  files.push_back({.name = "Jpeg", .reader = "image", .bytes = jpeg, .not_needed = 2, .may_be_longer = true});
  files.push_back({.name = "JpegProgressive",
                   .reader = "image",
                   .bytes = progressive,
                   .not_needed = 2,
                   .may_be_longer = true,
                   .options = '\2'});
  return files;
}

INSTANTIATE_TEST_SUITE_P(Formats, DamagedFile, testing::ValuesIn(whole_files()),
                         [](const auto& file) { return file.param.name; });

TEST(PackedFile, IsRefusedIfItExpandsTooFar) {
  std::string table = "x,label\n";
  for (int row = 0; row < 5'000'000; ++row) table += "0,0\n";
  for (const auto& [reader, content] :
       {std::pair("cifar", std::string(std::size_t{3073} * 6000, '\0')), {"csv", table}}) {
    const std::string bomb = '\0' + test::gzip(content);
    EXPECT_THAT(test::message_of<DataError>([&, &name = reader] { test::file_reader(name).read(bomb); }),
                HasSubstr("refused as a decompression bomb"));
  }
}

TEST(DamagedFiles, AreTestedInEveryFormatThatIsFuzzed) {
  const std::vector<WholeFile> files = whole_files();
  for (const test::FileReader& reader : test::file_readers())
    EXPECT_TRUE(std::ranges::count(files, reader.name, &WholeFile::reader) > 0) << reader.name;
}

}  // namespace sweep::damaged_files_test
