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
      {"CutGzip", Fate::kRefused, idx_images([] { return cut(test::gzip(images())); }, ".gz"),
       "data/train-images-idx3-ubyte.gz: the compressed data is cut short after "},
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
      {"FoldersOfText", Fate::kRefused,
       [](const SweepFolder& folder) {
         folder.write("data/cat/1.txt", "It is a cat.\n");
         folder.write("data/dog/1.txt", "It is a dog.\n");
       },
       "data: its format is not recognised. Known are: idx, "},
      {"CutJpeg", Fate::kSkipped, picture_file("bad.jpg", [] { return cut(test::jpeg_file(picture(3))); }),
       "data/cat/bad.jpg: the JPEG data is damaged: Premature end of JPEG file"},
      {"PngBomb", Fate::kSkipped, picture_file("bad.png", [] { return test::black_png(10'000, 10'000, 8); }),
       "data/cat/bad.png: the image has 10000 x 10000 pixels; at most 67108864 pixels are allowed"},
      {"PngBombBelowTheLimit", Fate::kRefused,
       picture_file("bad.png", [] { return test::black_png(8192, 8192, 24); }),
       "data/cat/bad.png: has 8192 x 8192 pixels, others have 16 x 16 pixels; give \"resize\": [height, "
       "width]"},
      {"JpegBomb", Fate::kSkipped,
       picture_file("bad.jpg", [] { return test::jpeg_of_many_scans(2000, 4000); }),
       "data/cat/bad.jpg: the JPEG data is damaged: more than 64 scans"},
      {"FifoAmongPictures", Fate::kSkipped,
       [](const SweepFolder& folder) {
         write_pictures(folder);
         ASSERT_EQ(::mkfifo((folder.path() / "data/cat/bad.jpg").c_str(), 0600), 0);
       },
       "data/cat/bad.jpg: is a pipe, not a file"},

      // Tables.
      {"ShortRow", Fate::kRefused, file("t.csv", [] { return "size,weight,label\n1,2,a\n4,16\n"; }),
       "t.csv: line 3: has 2 fields, the header has 3", "t.csv"},
      {.name = "ByteOrderMark",
       .fate = Fate::kRead,
       .write = file("t.csv", [] { return "\xef\xbb\xbfsize,weight,label\n1,2,a\n3,4,b\n5,6,a\n7,8,b\n"; }),
       .says = "2 features: size, weight\n",
       .path = "t.csv",
       .samples = 4},

      // Arrays.
      {"ArrayOfObjects", Fate::kRefused,
       [](const SweepFolder& folder) {
         folder.write("data/features.npy", test::npy_file("|O", "(4, 2)", std::string(64, '.')));
         folder.write("data/labels.npy", test::npy_file("|u1", "(4,)", std::string("\0\1\0\1", 4)));
       },
       "data/features.npy: holds Python objects, which are never loaded, as they could run programs"},
      {"NpzBomb", Fate::kRefused,
       file("bomb.npz",
            [] {
              return test::zip_file(
                  {{"x.npy", test::npy_file("|u1", "(60000, 1000)", std::string(60'000'000, '\0'))},
                   {"y.npy", test::npy_file("|u1", "(60000,)", std::string(60'000, '\1'))}});
            }),
       "bomb.npz: x.npy: expands to more than 100 times its size: such data is refused as a decompression "
       "bomb",
       "bomb.npz"},
  };
}

}  // namespace sweep::testing
