#include "core/data/fetch_dataset.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/child.h"
#include "core/base/file.h"
#include "core/data/readers/input_file.h"
#include "tests/support/data_files.h"
#include "tests/support/resource_limit.h"

namespace sweep::fetch_dataset_test {

using test::gzip;

// sha256sum of "abc" and of "hello" (FIPS 180-4's example, and the one of many manuals).
constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kHello[] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
constexpr std::string_view kFiles[] = {"one", "two"}, kDigests[] = {kAbc, kHello};
constexpr KnownDataset kPlain = {.name = "tiny",
                                 .format = "idx",
                                 .class_names = {},
                                 .shape = {1, 1, 1},
                                 .train_samples = 1,
                                 .files = kFiles,
                                 .digests = kDigests,
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

TEST_P(FetchBy, SaysWhatIsNoAnswerOfAWebServer) {
  const FileDescriptor server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(server.get(), any, size), 0);
  ASSERT_EQ(::listen(server.get(), 1), 0);
  constexpr timeval kLimit{20, 0};  // of accept(), should nobody come
  ASSERT_EQ(::setsockopt(server.get(), SOL_SOCKET, SO_RCVTIMEO, &kLimit, sizeof kLimit), 0);
  ASSERT_EQ(::getsockname(server.get(), any, &size), 0);
  const std::jthread answer([&] {
    const FileDescriptor client(retry_interrupted([&] { return ::accept(server.get(), nullptr, nullptr); }));
    EXPECT_GE(client.get(), 0) << std::strerror(errno);
    std::array<char, 4096> request;
    EXPECT_GT(::read(client.get(), request.data(), request.size()), 0);
    EXPECT_EQ(::write(client.get(), "garbage\r\n\r\n", 11), 11);
  });
  const test::Environment proxy("https_proxy", fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port)));
  options_.mirror = "https://example.org";
  EXPECT_THAT(error(), AllOf(StartsWith("https://example.org/tiny/one.gz: cannot be downloaded: "),
                             Not(HasSubstr("Traceback"))));
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
              StartsWith("/proc/nowhere: cannot make this directory: "));
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

TEST_F(FetchDataset, UnpacksTheFilesOfAnArchiveAndNoOthers) {
  KnownDataset known = kPlain;
  known.archive.name = "tiny.tar.gz";
  const auto archive_error = [&](const std::string& digest) {
    known.archive.sha256 = digest;
    return error(known);
  };
  // The digest of an archive of some of the "members"; "up" is called ../../three in it.
  const auto packed = [&](std::vector<std::string> members) {
    const fs::path archive = folder_.write("mirror/tiny/tiny.tar.gz", "");
    members.insert(members.begin(), {"tar", "-czPf", archive.string(), "--transform", "s,^up$,../../three,",
                                     "-C", (folder_ / "members").string()});
    EXPECT_EQ(run_command(members, [] { return true; }).code, 0);
    return file_sha256(archive);
  };
  folder_.write("members/bin/one", "abc");
  folder_.write("members/bin/readme", "no");
  folder_.write("members/deep/er/two", "hello");
  folder_.write("members/up", "no");
  fs::create_directory(folder_ / "members/links");
  fs::create_symlink("readme", folder_ / "members/links/one");
  const std::string digest = packed({"bin", "up", "deep"});
  known.archive.sha256 = digest;
  EXPECT_TRUE(fetch(known));
  EXPECT_THAT(names(), ElementsAre("tiny", "tiny/one", "tiny/two"));
  EXPECT_EQ(read_file(place_ / "two"), "hello");
  EXPECT_FALSE(fs::exists(folder_ / "three"));
  fs::remove_all(folder_ / "cache");

  const std::string url = options_.mirror + "/tiny/tiny.tar.gz";
  EXPECT_EQ(archive_error(kAbc).substr(0, url.size() + 40), url + ": is not the published file: its SHA-256");
  EXPECT_EQ(archive_error(packed({"bin", "up"})),
            url + ": cannot be unpacked: tar: two: Not found in archive");
  EXPECT_EQ(archive_error(packed({"links", "deep"})), url + ": the archive has no file one");
  const fs::path damaged = folder_.write("mirror/tiny/tiny.tar.gz", gzip(std::string(2000, 'x')));
  EXPECT_THAT(archive_error(file_sha256(damaged)), StartsWith(url + ": cannot be unpacked: tar: "));
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
    EXPECT_EQ(known.digests.size(), known.archive.name.empty() ? known.files.size() : 0u) << known.name;
    EXPECT_THAT(known.digests, Each(SizeIs(64u)));
  }
}

}  // namespace sweep::fetch_dataset_test
