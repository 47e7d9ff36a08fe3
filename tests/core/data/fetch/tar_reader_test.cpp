#include "core/data/fetch/tar_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "core/base/error.h"
#include "tests/support/idx_files.h"
#include "tests/support/message_of.h"
#include "tests/support/tar_files.h"
#include "tests/support/temporary_directory.h"

namespace sweep {
namespace {

using test::kTarEnd;
using test::tar_member;

// "NAME=CONTENT" of each member.
std::vector<std::string> members_of(InputFile& file) {
  TarReader tar(file);
  std::vector<std::string> members;
  while (const auto member = tar.next()) {
    std::string content(member->bytes + 10, '?');
    content.resize(tar.read(std::span(reinterpret_cast<std::uint8_t*>(content.data()), content.size())));
    members.push_back(member->name + "=" + content);
  }
  return members;
}

std::vector<std::string> members_of(const std::string& bytes) {
  std::istringstream in(bytes);
  InputFile file(in, "a.tar");
  return members_of(file);
}

std::string error_of(const std::string& bytes) {
  return test::message_of<DataError>([&] { members_of(bytes); });
}

TEST(TarReader, ReadsRegularFilesAndPassesOverAllElse) {
  const std::string archive = tar_member("d/", "", '5') + tar_member("d/one", "first") +
                              tar_member("link", "", '2') + tar_member("long", "ignored", 'L') +
                              tar_member("two", std::string(512, 'x'), '\0') + tar_member("none", "");
  EXPECT_THAT(members_of(archive + kTarEnd + "what follows is no matter"),
              testing::ElementsAre("d/one=first", "two=" + std::string(512, 'x'), "none="));
  EXPECT_THAT(members_of(test::gzip(archive)), testing::SizeIs(3)) << "some writers end without zeros";
}

TEST(TarReader, ReadsWhatTarWrites) {
  const test::TemporaryDirectory directory;
  directory.write("folder/a", "content of a");
  directory.write("folder/" + std::string(150, 'n'), "of a long name");
  const std::string command = "cd " + directory.path().string() + " && tar czf all.tar.gz folder/a folder/n*";
  ASSERT_EQ(std::system(command.c_str()), 0);
  InputFile file(directory / "all.tar.gz");
  EXPECT_THAT(members_of(file),
              testing::ElementsAre("folder/a=content of a", testing::EndsWith("n=of a long name")));
}

TEST(TarReader, SaysWhatIsWrong) {
  const std::string archive = tar_member("one", std::string(1000, 'x'));
  EXPECT_EQ(error_of(std::string(512, 'x')), "a.tar: is no tar archive, or is damaged");
  EXPECT_EQ(error_of(archive.substr(0, 100)), "a.tar: the tar archive is cut");
  EXPECT_EQ(error_of(archive.substr(0, 900)), "a.tar: the tar archive is cut");
  std::string damaged = archive;
  damaged[2] = 'f';  // of the name
  EXPECT_EQ(error_of(damaged), "a.tar: is no tar archive, or is damaged");
  // A size as large as there are digits for.
  std::string huge = tar_member("one", "");
  huge.replace(124, 11, "77777777777");
  const unsigned sum = static_cast<unsigned>(std::strtoul(huge.substr(148, 6).c_str(), nullptr, 8)) + 11 * 7;
  char checksum[8];
  std::snprintf(checksum, sizeof checksum, "%06o", sum);
  huge.replace(148, 6, checksum);
  std::istringstream in(huge);
  InputFile file(in, "a.tar");
  TarReader tar(file);
  EXPECT_EQ(tar.next()->bytes, 077777777777u);
  EXPECT_EQ(test::message_of<DataError>([&] { tar.next(); }), "a.tar: the tar archive is cut");
}

}  // namespace
}  // namespace sweep
