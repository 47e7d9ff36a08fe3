// The program, given data of every kind of damage: `data`, `plan` and a start each refuse it with one line
// that names the file, or skip it, all within two seconds and in bounded memory. What the readers make of
// such files is tested in tests/core/data/readers; this asks what the person sees.

#include <sys/stat.h>

#include "tests/support/image_files.h"
#include "tests/support/program_folder.h"

namespace sweep::testing::damaged_data_test {

enum class Fate {
  kRefused,  // exit code 2 and one line, from every command
  kSkipped,  // one file less, and a line that names it
};

struct Kind {
  std::string name;
  Fate fate;
  std::function<void(const SweepFolder&)> write;
  std::string says;  // the beginning of the line, without the folder: the file's name and what is wrong
  std::string path = "data";
  std::string dataset = "own";
  bool obeys_permissions = false;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

// Where Debian's package has Fashion-MNIST, which kinds of another data set than "own" need.
constexpr char kDebiansFashion[] = "/usr/share/datasets/fashion-mnist";

// Files that are small and claim, or expand to, far more than they are.

// A whole and correct black PNG of `bits` bits per pixel: 1 or 8 for gray, 24 for colour.
std::string black_png(std::uint32_t height, std::uint32_t width, unsigned bits) {
  const bool colour = bits == 24;
  // Each row begins with the byte of its filter.
  const std::uint64_t bytes = (1 + (std::uint64_t{width} * bits + 7) / 8) * height;
  return test::png_with(width, height, colour ? 8 : bits, colour ? 2 : 0,
                        test::deflated("", test::DeflateFormat::kZlib, bytes));
}

// A progressive JPEG of few bytes whose last scan is repeated until it takes a reader minutes.
std::string jpeg_of_many_scans(std::uint32_t side, int scans) {
  const std::string file =
      test::jpeg_file(test::flat_pixels(side, side, {128, 128, 128}), {.progressive = true});
  const std::size_t last = file.rfind("\xff\xda"), end = file.size() - 2;
  std::string bomb = file.substr(0, last);
  for (int i = 0; i < scans; ++i) bomb += file.substr(last, end - last);
  return bomb + file.substr(end);
}

using Writer = std::function<void(const SweepFolder&)>;
using Bytes = std::function<std::string()>;

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
             return test::deflated(test::idx({100'000, 28, 28}, ""), test::DeflateFormat::kGzip, 78'400'000);
           },
           ".gz"),
       "data/train-images-idx3-ubyte.gz: is cut short: its header promises [100000, 28, 28] values of 1 "
       "bytes"},

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
      {"PngBomb", Fate::kSkipped, picture_file("bad.png", [] { return black_png(10'000, 10'000, 8); }),
       "data/cat/bad.png: the image has 10000 x 10000 pixels; at most 67108864 pixels are allowed"},
      {"PngBombBelowTheLimit", Fate::kRefused,
       picture_file("bad.png", [] { return black_png(8192, 8192, 24); }),
       "data/cat/bad.png: has 8192 x 8192 pixels, others have 16 x 16 pixels; give \"resize\": [height, "
       "width]"},
      {"JpegBomb", Fate::kSkipped, picture_file("bad.jpg", [] { return jpeg_of_many_scans(2000, 4000); }),
       "data/cat/bad.jpg: the JPEG data is damaged: more than 64 scans"},
      {"FifoAmongPictures", Fate::kSkipped,
       [](const SweepFolder& folder) {
         write_pictures(folder);
         ASSERT_EQ(::mkfifo((folder.path() / "data/cat/bad.jpg").c_str(), 0600), 0);
       },
       "data/cat/bad.jpg: is a pipe, not a file"},

      {"NpzBomb", Fate::kRefused,
       file("bomb.npz",
            [] {
              return test::zip_file(
                  {{"x.npy", test::npy_file("|u1", "(60000, 1000)", std::string().append(60'000'000, '\0'))},
                   {"y.npy", test::npy_file("|u1", "(60000,)", std::string(60'000, '\1'))}});
            }),
       "bomb.npz: x.npy: expands to more than 100 times its size: such data is refused as a decompression "
       "bomb",
       "bomb.npz"},
  };
}

// A picture of the largest size that is decoded has 201 MB, and is turned from rows into channels.
constexpr std::uint64_t kMaxBytes = std::uint64_t{512} << 20;

class DamagedData : public ProgramFolder, public ::testing::WithParamInterface<Kind> {
 protected:
  void write_sweep_file() const {
    const Kind& kind = GetParam();
    folder_.write("s.json", R"({"dataset": {"name": ")" + kind.dataset + R"(", "path": ")" + kind.path +
                                R"("}, "network": {"layers": [{"type": "flatten"},
      {"type": "linear", "out_features": 10}]}, "batch_size": 2, "device": "cpu"})");
  }

  // The message without the folder's name.
  Finished run(const std::vector<std::string>& words) const {
    Finished finished =
        run_program(words, folder_.path(), {.obeys_permissions = GetParam().obeys_permissions});
    finished.err = folder_.without_folder(finished.err);
    finished.out = folder_.without_folder(finished.out);
#ifndef __SANITIZE_ADDRESS__
    EXPECT_LT(finished.cpu_seconds, 2.0);
    EXPECT_LT(finished.peak_bytes, kMaxBytes);
#endif
    return finished;
  }

  void expect_refused(const std::vector<std::string>& words) const {
    SCOPED_TRACE(words.front());
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 2) << finished.err;
    EXPECT_THAT(finished.err, StartsWith("sweep: " + GetParam().says));
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_FALSE(exists("runs"));
  }
};

TEST_P(DamagedData, IsRefusedOrSkippedWithinTwoSecondsInBoundedMemory) {
  const Kind& kind = GetParam();
  if (kind.dataset != "own" && !fs::exists(kDebiansFashion))
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  kind.write(folder_);
  write_sweep_file();
  const std::vector<std::string> data = {"data", "s.json"}, plan = {"plan", "s.json"},
                                 start = {"s.json", "--logdir", "runs"};
  if (kind.obeys_permissions && run(data).code == kCannotDrop)
    GTEST_SKIP() << "root may read everything, and cannot give that up";
  if (kind.fate == Fate::kRefused) {
    for (const auto& words : {data, plan, start}) expect_refused(words);
    return;
  }
  const json set = output({"data", "s.json"}).at("datasets").at(0);
  EXPECT_EQ(set.at("parts").at(0).at("samples"), 10u);
  EXPECT_EQ(set.at("skipped").size(), 1u);
  EXPECT_THAT(run(data).out, HasSubstr("\nskipped: " + kind.says));
  run(plan);
  const std::string name = kind.says.substr(0, kind.says.find(": ")),
                    reason = kind.says.substr(name.size() + 2);
  EXPECT_THAT(run(start).err, HasSubstr("data set \"own\": 1 file was skipped: " + name + " (" + reason));
}

INSTANTIATE_TEST_SUITE_P(Kinds, DamagedData, ::testing::ValuesIn(kinds_of_damage()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace sweep::testing::damaged_data_test
