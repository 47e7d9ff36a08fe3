#include "core/data/fetch_dataset.h"

#include "core/base/file.h"
#include "core/data/readers/sha256.h"
#include "tests/support/data_files.h"
#include "tests/support/resource_limit.h"

namespace sweep::fetch_dataset_test {

// One member of a ustar archive: its header and its content, both as whole blocks.
std::string tar_member(const std::string& name, std::string_view content, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 7, "0000644");
  char size[12];
  std::snprintf(size, sizeof size, "%011zo", content.size());
  header.replace(124, 11, size);
  header.replace(148, 8, "        ");
  header[156] = type;
  header.replace(257, 8,
                 std::string("ustar\0"
                             "00",
                             8));
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  char checksum[8];
  std::snprintf(checksum, sizeof checksum, "%06o", sum);
  header.replace(148, 7, std::string(checksum, 7));
  return header.append(content).append((512 - content.size() % 512) % 512, '\0');
}

const std::string kTarEnd(1024, '\0');

using test::gzip;

// sha256sum of "abc" and of "hello" (FIPS 180-4's example, and the one of many manuals).
constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kHello[] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
constexpr KnownFile kFiles[] = {{"one", kAbc}, {"two", kHello}};
constexpr KnownDataset kPlain = {.name = "tiny",
                                 .format = "idx",
                                 .class_names = {},
                                 .shape = {1, 1, 1},
                                 .train_samples = 1,
                                 .files = kFiles,
                                 .source = "https://example.org/data/"};

class FetchDataset : public testing::Test {
 protected:
  FetchDataset() { options_.mirror = "file://" + (folder_ / "mirror").string(); }
  void write_files() {
    folder_.write("mirror/tiny/one.gz", gzip("abc"));
    folder_.write("mirror/tiny/two.gz", gzip("hello"));
  }
  bool fetch(const KnownDataset& known = kPlain) { return fetch_dataset(known, place_, options_); }
  template <typename Error = DataError>
  std::string error(const KnownDataset& known = kPlain) {
    return message_of<Error>([&] { fetch(known); });
  }
  // Of everything in the cache, hidden files as well.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    if (!fs::exists(folder_ / "cache")) return names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache"))
      names.push_back(entry.path().lexically_relative(folder_ / "cache").string());
    std::sort(names.begin(), names.end());
    return names;
  }

  const test::TemporaryDirectory folder_;
  const fs::path place_ = folder_ / "cache/tiny";
  FetchOptions options_;
};

TEST_F(FetchDataset, PutsCheckedFilesIntoItsDirectory) {
  write_files();
  folder_.write("cache/tiny/notes.txt", "mine");
  folder_.write("cache/tiny/one", "damaged, and read in place of one.gz if it stayed");
  std::vector<std::string> seen;
  options_.progress = [&](const std::string& file, std::uint64_t) {
    if (seen.empty() || seen.back() != file) seen.push_back(file);
    return true;
  };
  EXPECT_TRUE(fetch());
  EXPECT_THAT(names(), ElementsAre("tiny", "tiny/notes.txt", "tiny/one.gz", "tiny/two.gz"));
  EXPECT_EQ(read_file(place_ / "two.gz"), gzip("hello"));
  EXPECT_THAT(seen, ElementsAre("one.gz", "two.gz"));
}

TEST_F(FetchDataset, RefusesAnotherContentAndLeavesNothing) {
  write_files();
  folder_.write("mirror/tiny/two.gz", gzip("Hello"));
  EXPECT_THAT(error(),
              AllOf(StartsWith(options_.mirror + "/tiny/two.gz: is not the published "
                                                 "file: its SHA-256 is 185f8db32271fe25f561a6fc938b"),
                    EndsWith(std::string(", expected ") + kHello)));
  EXPECT_THAT(names(), IsEmpty());
  folder_.write("mirror/tiny/two.gz", gzip("hello").substr(0, 15));
  EXPECT_THAT(error(), StartsWith(options_.mirror + "/tiny/two.gz: "));
  EXPECT_THAT(names(), IsEmpty());
}

// A wheel is installed where there is Python, and often nothing else.
class FetchBy : public FetchDataset, public testing::WithParamInterface<const char*> {
 protected:
  FetchBy() {
    fs::create_directory(folder_ / "bin");
    fs::create_symlink(std::string("/usr/bin/") + GetParam(), folder_ / "bin" / GetParam());
  }

  const test::Environment path_{"PATH", (folder_ / "bin").string()};
};

TEST_P(FetchBy, PutsCheckedFilesIntoItsDirectory) {
  write_files();
  EXPECT_TRUE(fetch());
  EXPECT_EQ(read_file(place_ / "two.gz"), gzip("hello"));
}

TEST_P(FetchBy, SaysWhatCannotBeFetched) {
  EXPECT_EQ(error(), options_.mirror + "/tiny/one.gz: there is no such file, or it cannot be read");
  write_files();
  options_.most_bytes = 10;
  EXPECT_EQ(error(),
            options_.mirror + "/tiny/one.gz: has more than 10 bytes, which is the most that is allowed");
  // Nothing listens on this port.
  options_.most_bytes = 1000;
  options_.mirror = "https://127.0.0.1:1";
  EXPECT_THAT(error(), AllOf(StartsWith("https://127.0.0.1:1/tiny/one.gz: cannot be reached ("),
                             EndsWith("): is there a network?")));
  for (const char* other : {"http://example.org", "ftp://example.org", "/mirror", "https:/"}) {
    options_.mirror = other;
    EXPECT_THAT(error<ConfigError>(), HasSubstr("want the beginning of a URL, https://")) << other;
  }
  EXPECT_THAT(names(), IsEmpty());
  options_.mirror = "https://127.0.0.1:1";
  fs::remove(folder_ / "bin" / GetParam());
  EXPECT_EQ(error(), "the program curl is needed and not in PATH. Install it with `apt-get install curl`");
}

INSTANTIATE_TEST_SUITE_P(Programs, FetchBy, testing::Values("curl", "python3"));

TEST_F(FetchDataset, StopsWhenItIsToldTo) {
  write_files();
  options_.progress = [](const std::string& file, std::uint64_t) { return file != "two.gz"; };
  EXPECT_FALSE(fetch());
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(FetchDataset, SaysWhereItCannotWrite) {
  write_files();
  EXPECT_THAT(message_of<IoError>([&] { fetch_dataset(kPlain, "/proc/nowhere/tiny", options_); }),
              StartsWith("/proc/nowhere: cannot create: "));
  // A limit on the size of files is met as a full disk is: in the middle of writing.
  folder_.write("mirror/tiny/one.gz", gzip(test::some_bytes(200'000)));
  {
    const test::ResourceLimit full_disk(RLIMIT_FSIZE, 1000);
    EXPECT_THAT(error<IoError>(), HasSubstr("one.gz: cannot write: "));
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(FetchDataset, RemovesWhatKilledProcessesLeftADayAgo) {
  write_files();
  folder_.write("cache/.tiny.download-old000/one.gz", "part");
  folder_.write("cache/.tiny.download-new000/one.gz", "part");
  fs::last_write_time(folder_ / "cache/.tiny.download-old000",
                      fs::file_time_type::clock::now() - std::chrono::hours(25));
  EXPECT_TRUE(fetch());
  EXPECT_FALSE(fs::exists(folder_ / "cache/.tiny.download-old000"));
  EXPECT_TRUE(fs::exists(folder_ / "cache/.tiny.download-new000"));
}

std::string digest_of(const std::string& bytes) {
  Sha256 digest;
  digest.update({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  return digest.finish();
}

TEST_F(FetchDataset, UnpacksTheFilesOfAnArchiveAndNoOthers) {
  const auto write_archive = [&](const std::string& archive) {
    folder_.write("mirror/tiny/tiny.tar.gz", archive);
    return digest_of(archive);
  };
  KnownDataset known = kPlain;
  const auto fetch_archive = [&](const std::string& digest) {
    known.archive = {"tiny.tar.gz", digest};
    return fetch(known);
  };
  const std::string members =
      tar_member("bin/one", "abc") + tar_member("bin/readme", "no") + tar_member("../../three", "no");
  EXPECT_TRUE(fetch_archive(write_archive(gzip(members + tar_member("deep/er/two", "hello") + kTarEnd))));
  EXPECT_THAT(names(), ElementsAre("tiny", "tiny/one", "tiny/two"));
  EXPECT_EQ(read_file(place_ / "two"), "hello");
  EXPECT_FALSE(fs::exists(folder_ / "two"));
  fs::remove_all(folder_ / "cache");

  const auto archive_error = [&](const std::string& digest) {
    return message_of<DataError>([&] { fetch_archive(digest); });
  };
  const std::string url = options_.mirror + "/tiny/tiny.tar.gz";
  EXPECT_EQ(archive_error(kAbc).substr(0, url.size() + 40), url + ": is not the published file: its SHA-256");
  EXPECT_EQ(archive_error(write_archive(gzip(members + kTarEnd))),
            url + ": cannot be unpacked: tar: two: Not found in archive");
  const std::string link = tar_member("one", "", '2') + tar_member("two", "hello") + kTarEnd;
  EXPECT_THAT(archive_error(write_archive(gzip(link))), StartsWith(url + ": "));
  EXPECT_THAT(archive_error(write_archive(gzip(std::string(2000, 'x')))),
              StartsWith(url + ": cannot be unpacked: tar: "));
  EXPECT_THAT(names(), IsEmpty());
}

TEST(DatasetUrls, AreThoseOfTheSourceOrTheMirror) {
  EXPECT_THAT(dataset_urls(kPlain, ""),
              ElementsAre("https://example.org/data/one.gz", "https://example.org/data/two.gz"));
  EXPECT_THAT(dataset_urls(kPlain, "file:///m/"),
              ElementsAre("file:///m/tiny/one.gz", "file:///m/tiny/two.gz"));
  for (const KnownDataset& known : known_datasets()) {
    for (const std::string& url : dataset_urls(known, "")) {
      EXPECT_THAT(url, AllOf(StartsWith("https://"), EndsWith(".gz")));
    }
    EXPECT_TRUE(known.archive.name.empty() || known.archive.sha256.size() == 64) << known.name;
    for (const KnownFile& file : known.files)
      EXPECT_EQ(file.sha256.size(), known.archive.name.empty() ? 64u : 0u) << file.name;
  }
}

}  // namespace sweep::fetch_dataset_test
