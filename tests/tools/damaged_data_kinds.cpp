#include "tests/tools/damaged_data_kinds.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>

#include "tests/support/array_files.h"
#include "tests/support/idx_files.h"
#include "tests/support/image_files.h"
#include "tests/tools/bombs.h"

namespace sweep::testing {
namespace {

namespace fs = std::filesystem;

using Writer = std::function<void(const SweepFolder&)>;
using Bytes = std::function<std::string()>;

// --- writers
// ------------------------------------------------------------------------------------------------

constexpr std::uint32_t kSamples = 60, kSide = 8;

std::string images(std::uint32_t count = kSamples) {
  return test::idx({count, kSide, kSide}, test::some_bytes(count * kSide * kSide));
}
std::string labels(std::uint32_t count = kSamples) {
  std::string values;
  for (std::uint32_t i = 0; i < count; ++i) values += static_cast<char>(i % 10);
  return test::idx({count}, values);
}

void write_idx(const SweepFolder& folder, const std::string& image_bytes, const std::string& label_bytes,
               const std::string& extension = "", const std::string& part = "train") {
  folder.write("data/" + part + "-images-idx3-ubyte" + extension, image_bytes);
  folder.write("data/" + part + "-labels-idx1-ubyte" + extension, label_bytes);
}

// A kind with damaged training images.
Writer idx_images(const Bytes& bytes, const std::string& extension = "") {
  return [=](const SweepFolder& folder) {
    write_idx(folder, bytes(), extension.empty() ? labels() : test::gzip(labels()), extension);
  };
}

std::string flipped(std::string bytes, std::size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
  return bytes;
}

std::string zeros(std::size_t count) {
  std::string bytes;
  bytes.resize(count);
  return bytes;
}

std::string cut(const std::string& bytes) { return bytes.substr(0, bytes.size() / 2); }

test::Pixels picture(unsigned index, unsigned side = 16) {
  return test::make_pixels(side, side, 3,
                           [=](unsigned y, unsigned x, unsigned c) { return index * 37 + y * x + c; });
}

// Five good pictures of each of two classes.
void write_pictures(const SweepFolder& folder) {
  for (unsigned i = 0; i < 10; ++i)
    folder.write((i % 2 == 0 ? "data/cat/" : "data/dog/") + std::to_string(i) + ".png",
                 test::png_file(picture(i)));
}

// A kind of one file among good pictures.
Writer picture_file(const std::string& name, const Bytes& bytes) {
  return [=](const SweepFolder& folder) {
    write_pictures(folder);
    folder.write("data/cat/" + name, bytes());
  };
}

Writer file(const std::string& name, const Bytes& bytes) {
  return [=](const SweepFolder& folder) { folder.write(name, bytes()); };
}

// A table of 12 rows whose row in line 6 is `row`.
std::string table(const std::string& row) {
  std::string text = "size,weight,label\n";
  for (int i = 0; i < 12; ++i) {
    const std::string good =
        std::to_string(i) + "," + std::to_string(20 - i) + (i % 2 == 0 ? ",a\n" : ",b\n");
    text += i == 4 ? row + "\n" : good;
  }
  return text;
}

void write_arrays(const SweepFolder& folder, const std::string& features) {
  folder.write("data/features.npy", features);
  folder.write("data/labels.npy", test::npy_file("|u1", "(4,)", std::string("\0\1\0\1", 4)));
}

// The third batch is `third`.
void write_cifar(const SweepFolder& folder, const std::string& third) {
  for (const int batch : {1, 2, 3, 4, 5})
    folder.write("data/data_batch_" + std::to_string(batch) + ".bin",
                 batch == 3 ? third : std::string(3073 * 2, '\1'));
}

void link_to_debians_fashion(const SweepFolder& folder, bool swapped) {
  for (const char* file : {"images-idx3-ubyte.gz", "labels-idx1-ubyte.gz"}) {
    for (const char* part : {"train-", "t10k-"}) {
      const std::string other = std::string(part) == "train-" ? "t10k-" : "train-";
      fs::create_directories(folder.path() / "data");
      fs::create_symlink(std::string(kDebiansFashion) + "/" + (swapped ? other : part) + file,
                         folder.path() / "data" / (std::string(part) + file));
    }
  }
}

// --- the kinds
// ----------------------------------------------------------------------------------------------

}  // namespace

std::vector<Kind> kinds_of_damage() {
  return {
      // Files of any format.
      {"Absent", Fate::kRefused, [](const SweepFolder&) {},
       "data: no data set there: no such file or directory"},
      {"EmptyFile", Fate::kRefused, file("data", [] { return ""; }), "data: is empty"},
      {"EmptyFolder", Fate::kRefused,
       [](const SweepFolder& folder) { fs::create_directories(folder.path() / "data"); },
       "data: is an empty folder"},
      {"SymlinkLoop", Fate::kRefused,
       [](const SweepFolder& folder) { fs::create_symlink("data", folder.path() / "data"); },
       "data: cannot open: Too many levels of symbolic links"},
      {"Fifo", Fate::kRefused,
       [](const SweepFolder& folder) { ASSERT_EQ(::mkfifo((folder.path() / "data").c_str(), 0600), 0); },
       "data: is neither a file nor a folder"},
      {.name = "Unreadable",
       .fate = Fate::kRefused,
       .write =
           [](const SweepFolder& folder) {
             write_idx(folder, images(), labels());
             fs::permissions(folder.path() / "data/train-images-idx3-ubyte", fs::perms::none);
           },
       .says = "data/train-images-idx3-ubyte: cannot open: Permission denied",
       .obeys_permissions = true},

      // IDX.
      {"EmptyIdx", Fate::kRefused, idx_images([] { return std::string(); }),
       "data/train-images-idx3-ubyte: is empty, expected an IDX file"},
      {"CutGzip", Fate::kRefused, idx_images([] { return cut(test::gzip(images())); }, ".gz"),
       "data/train-images-idx3-ubyte.gz: the compressed data is cut short after "},
      {"FlippedByteInGzip", Fate::kRefused,
       idx_images([] { return flipped(test::gzip(images()), 900); }, ".gz"),
       "data/train-images-idx3-ubyte.gz: the compressed data is damaged: "},
      {"TrailingJunk", Fate::kRefused, idx_images([] { return images() + "junk"; }),
       "data/train-images-idx3-ubyte: is too long: more follows the 3840 values of its header"},
      {"TrailingJunkBehindGzip", Fate::kRefused,
       idx_images([] { return test::gzip(images()) + "junk"; }, ".gz"),
       "data/train-images-idx3-ubyte.gz: something that is not gzip follows the end of the compressed data"},
      {"WrongMagic", Fate::kRefused, idx_images([] { return "\x01\x02" + images().substr(2); }),
       "data/train-images-idx3-ubyte: not an IDX file: it starts with the bytes "},
      {"WrongSizes", Fate::kRefused, idx_images([] {
         return test::idx({60, 8, 9}, test::some_bytes(60 * 64));
       }),
       "data/train-images-idx3-ubyte: is cut short: its header promises [60, 8, 9] values of 1 bytes"},
      {"OtherNumberOfLabels", Fate::kRefused,
       [](const SweepFolder& folder) { write_idx(folder, images(), labels(59)); },
       "data/train-images-idx3-ubyte: holds 60 samples, but "},
      {.name = "LabelsOutOfRange",
       .fate = Fate::kRefused,
       .write =
           [](const SweepFolder& folder) {
             write_idx(folder, images(), labels());
             write_idx(folder, images(10), test::idx({10}, std::string("\0\1\2\3\4\5\6\7\x8\xff", 10)), "",
                       "t10k");
           },
       .says = "data/t10k-labels-idx1-ubyte: label 255 of sample 9 (from 0) is out of range"},
      {"ImagesAndLabelsSwapped", Fate::kRefused,
       [](const SweepFolder& folder) { write_idx(folder, labels(), images()); },
       "data/train-labels-idx1-ubyte: holds images"},
      {"GzipBomb", Fate::kRefused,
       idx_images(
           [] {
             return test::deflated_zeros(test::idx({100'000, 28, 28}, ""), 78'400'000,
                                         test::DeflateFormat::kGzip);
           },
           ".gz"),
       "data/train-images-idx3-ubyte.gz: is cut short: its header promises [100000, 28, 28] values of 1 "
       "bytes"},

      // CIFAR's batches.
      {"CutCifarBatch", Fate::kRefused,
       [](const SweepFolder& folder) { write_cifar(folder, std::string(3073 * 4 - 1, '\1')); },
       "data/data_batch_3.bin: holds 12291 bytes, which is not a number of records of 3073 bytes"},
      {"CifarLabelOutOfRange", Fate::kRefused,
       [](const SweepFolder& folder) { write_cifar(folder, std::string(3073, '\x0a')); },
       "data/data_batch_3.bin: label 10 of sample 0 (from 0) is out of range: 0 to 9"},

      // Known sets, whose digests are known.
      {.name = "TrainAndTestSwapped",
       .fate = Fate::kRefused,
       .write = [](const SweepFolder& folder) { link_to_debians_fashion(folder, true); },
       .says =
           "data/train-images-idx3-ubyte.gz: has the content of t10k-images-idx3-ubyte of \"fashion-mnist\", "
           "expected train-images-idx3-ubyte of \"fashion-mnist\". To get the right files, run ",
       .dataset = "fashion-mnist"},
      {.name = "FashionUnderTheNameOfMnist",
       .fate = Fate::kRefused,
       .write = [](const SweepFolder& folder) { link_to_debians_fashion(folder, false); },
       .says = "data/train-images-idx3-ubyte.gz: has the content of train-images-idx3-ubyte of "
               "\"fashion-mnist\", "
               "expected train-images-idx3-ubyte of \"mnist\". To get the right files, run `sweep data get "
               "mnist`.",
       .dataset = "mnist"},

      // Folders of pictures.
      {"OneClass", Fate::kRefused, file("data/cat/1.png", [] { return test::png_file(picture(1)); }),
       "data: has images of one class only, \"cat\"; expected a folder per class, at least two"},
      {"NoImages", Fate::kRefused,
       [](const SweepFolder& folder) {
         fs::create_directories(folder.path() / "data/cat");
         folder.write("data/dog/1.png", test::png_file(picture(1)));
       },
       "data/cat: holds no images"},
      {"FoldersOfText", Fate::kRefused,
       [](const SweepFolder& folder) {
         folder.write("data/cat/1.txt", "It is a cat.\n");
         folder.write("data/dog/1.txt", "It is a dog.\n");
       },
       "data: its format is not recognised. Known are: idx, "},
      {"PngOfNoPixels", Fate::kSkipped, picture_file("bad.png", [] { return test::black_png(0, 0, 8); }),
       "data/cat/bad.png: the PNG data is damaged: invalid image width"},
      {"EmptyImage", Fate::kSkipped, picture_file("bad.jpg", [] { return ""; }),
       "data/cat/bad.jpg: is empty, expected an image"},
      {"CutJpeg", Fate::kSkipped, picture_file("bad.jpg", [] { return cut(test::jpeg_file(picture(3))); }),
       "data/cat/bad.jpg: the JPEG data is damaged: Premature end of JPEG file"},
      {"FlippedByteInPng", Fate::kSkipped,
       picture_file("bad.png", [] { return flipped(test::png_file(picture(3)), 60); }),
       "data/cat/bad.png: the PNG data is damaged: "},
      {"TextNamedJpg", Fate::kSkipped, picture_file("bad.jpg", [] { return "It is a cat.\n"; }),
       "data/cat/bad.jpg: is not an image; allowed: JPEG, PNG"},
      {"PngBomb", Fate::kSkipped, picture_file("bad.png", [] { return test::black_png(10'000, 10'000, 8); }),
       "data/cat/bad.png: the image has 10000 x 10000 pixels; at most 67108864 pixels are allowed"},
      {"PngBombBelowTheLimit", Fate::kRefused,
       picture_file("bad.png", [] { return test::black_png(8192, 8192, 24); }),
       "data/cat/bad.png: has 8192 x 8192 pixels, others have 16 x 16 pixels; give \"resize\": [height, "
       "width]"},
      {"JpegBomb", Fate::kSkipped,
       picture_file("bad.jpg", [] { return test::jpeg_of_many_scans(2000, 4000); }),
       "data/cat/bad.jpg: the JPEG data is damaged: more than 64 scans"},
      {"ImageOf20000Pixels", Fate::kSkipped,
       picture_file("bad.png", [] { return test::black_png(20'000, 20'000, 1); }),
       "data/cat/bad.png: the image has 20000 x 20000 pixels; at most 67108864 pixels are allowed"},
      {"LoopOfFolders", Fate::kSkipped,
       [](const SweepFolder& folder) {
         write_pictures(folder);
         fs::create_directory_symlink(folder.path() / "data/cat", folder.path() / "data/cat/again");
       },
       "data/cat/again: links to a folder that has been read already"},
      {"FifoAmongPictures", Fate::kSkipped,
       [](const SweepFolder& folder) {
         write_pictures(folder);
         ASSERT_EQ(::mkfifo((folder.path() / "data/cat/bad.jpg").c_str(), 0600), 0);
       },
       "data/cat/bad.jpg: is a pipe, not a file"},
      {.name = "CmykJpeg",
       .fate = Fate::kRead,
       .write = picture_file(
           "inks.jpg",
           [] {
             return test::jpeg_file(test::flat_pixels(16, 16, {9, 99, 0, 30}), {.adobe_inks = true});
           }),
       .says = "",
       .samples = 11},
      {.name = "PngOf16Bits",
       .fate = Fate::kRead,
       .write = picture_file("deep.png", [] { return test::png_file(picture(3), {.bits = 16}); }),
       .says = "",
       .samples = 11},

      // Tables.
      {"ShortRow", Fate::kRefused, file("t.csv", [] { return table("4,16"); }),
       "t.csv: line 6: has 2 fields, the header has 3", "t.csv"},
      {.name = "QuotedNewline",
       .fate = Fate::kRead,
       .write = file("t.csv", [] { return table("4,16,\"a\nb\""); }),
       .says = "",
       .path = "t.csv",
       .samples = 12},
      {"QuoteThatIsNeverClosed", Fate::kRefused, file("t.csv", [] { return table("4,16,\"a"); }),
       "t.csv: line 6: field 3 starts with a quote that is never closed", "t.csv"},
      {.name = "ByteOrderMark",
       .fate = Fate::kRead,
       .write = file("t.csv", [] { return "\xef\xbb\xbf" + table("4,16,a"); }),
       .says = "2 features: size, weight\n",
       .path = "t.csv",
       .samples = 12},
      {"NotANumber", Fate::kRefused, file("t.csv", [] { return table("4,NaN,a"); }),
       "t.csv: line 6, column \"weight\": the value is missing, as \"NaN\"; with \"missing\": \"mean\" it "
       "becomes",
       "t.csv"},
      {.name = "NotANumberThatBecomesTheMean",
       .fate = Fate::kRead,
       .write = file("t.csv", [] { return table("4,NaN,a"); }),
       .says = "",
       .path = "t.csv",
       .more = R"(, "missing": "mean")",
       .samples = 12},
      {"TextInANumberColumn", Fate::kRefused, file("t.csv", [] { return table("4,heavy,a"); }),
       "t.csv: line 6, column \"weight\": \"heavy\" is not a number", "t.csv"},
      {.name = "ConstantColumn",
       .fate = Fate::kRead,
       .write = file("t.csv", [] { return std::string("size,unit,label\n1,7,a\n2,7,b\n3,7,a\n4,7,b\n"); }),
       .says = "t.csv: column \"unit\" has the same value in all rows\n",
       .path = "t.csv",
       .samples = 4},

      // Arrays.
      {"ArrayOfObjects", Fate::kRefused,
       [](const SweepFolder& folder) {
         write_arrays(folder, test::npy_file("|O", "(4, 2)", std::string(64, '.')));
       },
       "data/features.npy: holds Python objects, which are never loaded, as they could run programs"},
      {.name = "FortranOrder",
       .fate = Fate::kRead,
       .write =
           [](const SweepFolder& folder) {
             const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8};
             write_arrays(folder, test::npy_file("<f4", "(4, 2)", test::bytes_of(values), true));
           },
       .says = "",
       .samples = 4},
      {"CutArray", Fate::kRefused,
       [](const SweepFolder& folder) {
         write_arrays(folder, test::npy_file("<f4", "(4, 2)", std::string(30, '\0')));
       },
       "data/features.npy: is cut short: its header promises [4, 2] = 8 values of 4 bytes"},
      {"NpzBomb", Fate::kRefused,
       file("bomb.npz",
            [] {
              return test::zip_file(
                  {{"x.npy", test::npy_file("|u1", "(60000, 1000)", zeros(60'000'000))},
                   {"y.npy", test::npy_file("|u1", "(60000,)", std::string(60'000, '\1'))}});
            }),
       "bomb.npz: x.npy: expands to more than 100 times its size: such data is refused as a decompression "
       "bomb",
       "bomb.npz"},
  };
}

}  // namespace sweep::testing
