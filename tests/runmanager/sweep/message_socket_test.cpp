#include "runmanager/sweep/message_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/worker.pb.h"
#include "runmanager/kinds/shared_dataset.h"
#include "tests/support/test.h"

namespace sweep::message_socket_test {

using Arrived = MessageSocket::Arrived;

class Messages : public testing::Test {
 protected:
  Messages() : Messages(ends()) {}

  // As it comes from a process that is no worker.
  void send_raw(const std::string& bytes) {
    ASSERT_EQ(::send(ours_.fd(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  static std::string framed(std::uint32_t length, const std::string& bytes) {
    std::string frame(sizeof length, '\0');
    std::memcpy(frame.data(), &length, sizeof length);
    return frame + bytes;
  }

  MessageSocket ours_, theirs_;
  proto::FromWorker message, got;

 private:
  struct Ends {
    int fds[2];
  };
  static Ends ends() {
    Ends ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.fds) != 0) throw IoError("no sockets");
    return ends;
  }
  explicit Messages(Ends ends) : ours_(ends.fds[0]), theirs_(ends.fds[1]) {}
};

TEST_F(Messages, ThatCannotBeSentEndTheConnectionForBothEnds) {
  // More than the socket takes without waiting, so that half of the message is on its way.
  ASSERT_EQ(::fcntl(ours_.fd(), F_SETFL, O_NONBLOCK), 0);
  message.set_failed(std::string(1'000'000, 'x'));
  EXPECT_FALSE(ours_.send(message));
  proto::FromWorker received;
  EXPECT_FALSE(theirs_.receive(received));
  EXPECT_EQ(ours_.poll(received), Arrived::kEnd);
}

TEST_F(Messages, ArriveInTheirOrderAsTheyWereSent) {
  proto::Batches& batches = *message.mutable_batches();
  batches.set_epoch(3);
  batches.set_count(std::numeric_limits<std::uint64_t>::max());
  batches.set_loss(std::numeric_limits<double>::quiet_NaN());
  batches.set_correct(-1);
  ASSERT_TRUE(ours_.send(message));
  message.set_io_error("a path that is not UTF-8: \xff");
  ASSERT_TRUE(ours_.send(message));

  ASSERT_EQ(theirs_.poll(got), Arrived::kMessage);
  EXPECT_EQ(got.batches().epoch(), 3);
  EXPECT_EQ(got.batches().count(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(std::isnan(got.batches().loss()));
  EXPECT_EQ(got.batches().correct(), -1);
  ASSERT_TRUE(theirs_.receive(got));
  EXPECT_FALSE(got.has_batches());
  EXPECT_EQ(got.io_error(), "a path that is not UTF-8: \xff");
  EXPECT_EQ(theirs_.poll(got), Arrived::kNothing);
}

TEST_F(Messages, AreTakenOnlyWhenWhole) {
  message.set_phase("test");
  std::string bytes = message.SerializeAsString();
  bytes = framed(static_cast<std::uint32_t>(bytes.size()), bytes);
  for (const char byte : bytes) {
    EXPECT_EQ(theirs_.poll(got), Arrived::kNothing);
    send_raw(std::string(1, byte));
  }
  ASSERT_EQ(theirs_.poll(got), Arrived::kMessage);
  EXPECT_EQ(got.phase(), "test");
}

TEST_F(Messages, CarryADescriptorThatStaysOpenWithTheReceiver) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  message.set_phase("test");
  ASSERT_TRUE(ours_.send(message, pipe[1]));
  ::close(pipe[1]);
  ASSERT_TRUE(ours_.send(message));
  ASSERT_TRUE(theirs_.receive(got));
  ASSERT_TRUE(theirs_.receive(got));
  const int received = theirs_.take_descriptor();
  ASSERT_GE(received, 0);
  EXPECT_EQ(theirs_.take_descriptor(), -1);
  EXPECT_EQ(::write(received, "x", 1), 1);
  ::close(received);
  char bytes[2];
  EXPECT_EQ(::read(pipe[0], bytes, 2), 1);
  EXPECT_EQ(::read(pipe[0], bytes, 2), 0) << "nobody else has it";
  ::close(pipe[0]);
}

TEST_F(Messages, MayBeLargerThanWhatASocketHolds) {
  message.set_epoch(std::string(1'000'000, 'x'));
  std::thread sender([&] { EXPECT_TRUE(ours_.send(message)); });
  EXPECT_TRUE(theirs_.receive(got));
  sender.join();
  EXPECT_EQ(got.epoch(), message.epoch());
}

TEST_F(Messages, WithoutContentSurvive) {
  got.set_phase("left from before");
  ASSERT_TRUE(ours_.send(proto::FromWorker()));
  ASSERT_TRUE(theirs_.receive(got));
  EXPECT_EQ(got.content_case(), proto::FromWorker::CONTENT_NOT_SET);
}

TEST_F(Messages, EndWithTheOtherEndButNotBeforeWhatItSent) {
  message.set_phase("last");
  ASSERT_TRUE(ours_.send(message));
  ::shutdown(ours_.fd(), SHUT_RDWR);
  ASSERT_EQ(theirs_.poll(got), Arrived::kMessage);
  EXPECT_EQ(got.phase(), "last");
  EXPECT_EQ(theirs_.poll(got), Arrived::kEnd);
  EXPECT_FALSE(theirs_.receive(got));
  EXPECT_FALSE(theirs_.send(message));
}

TEST_F(Messages, CutOffAtTheEndAreNone) {
  send_raw(framed(10, "cut"));
  ::shutdown(ours_.fd(), SHUT_RDWR);
  EXPECT_EQ(theirs_.poll(got), Arrived::kEnd);
}

TEST_F(Messages, DamagedOnesAreErrors) {
  send_raw(framed(3, "\xff\xff\xff"));
  EXPECT_THROW(theirs_.poll(got), DataError);
  send_raw(framed((1 << 30) + 1, ""));  // Nobody waits for so much.
  EXPECT_THROW(theirs_.receive(got), DataError);
}

// Data sets that processes share: the same samples in the same order, whether they lie in memory or in a
// file.

// Six samples of two bytes, in another order than they are stored; four to train on, two to test.
Dataset dataset_in(std::shared_ptr<const MappedFile> file) {
  const MaybeOwnedArray<std::uint8_t> samples(file->bytes().subspan(3, 12), file);
  const auto set = std::make_shared<TensorDataset>(
      TensorDataset{{2}, samples, std::vector{0, 0, 1, 0, 1, 1}, std::move(file)});
  Dataset dataset;
  dataset.name = "six";
  dataset.shape = {2};
  dataset.class_names = {"a", "b"};
  const auto order = std::make_shared<const std::vector<std::uint32_t>>(std::vector{5u, 0u, 4u, 1u, 3u, 2u});
  dataset.train = {set, 0, 4, order};
  dataset.test = {set, 4, 2, order};
  return dataset;
}

void expect_six(const Dataset& found) {
  const TensorDataset& set = *found.train.set;
  EXPECT_EQ(found.test.set, found.train.set);
  EXPECT_EQ(found.test.order, found.train.order);
  EXPECT_THAT(std::get<0>(set.sample(found.train.row(0))), ElementsAre('k', 'l'));
  EXPECT_THAT(std::get<0>(set.sample(found.test.row(1))), ElementsAre('e', 'f'));
  EXPECT_THAT(found.train.labels(), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(found.test.labels(), ElementsAre(0, 1));
}

TEST(SharedDataset, LeavesSamplesInAFileThere) {
  const test::TemporaryDirectory directory;
  const auto path = directory.write("samples", "---abcdefghijkl---");
  const auto file = std::make_shared<const MappedFile>(open_regular_file(path), MapUse::kPieces);
  const SharedDataset shared(dataset_in(file));
  EXPECT_EQ(shared.file_fd(), file->fd());
  const Dataset opened =
      open_shared_dataset(shared.fd(), FileDescriptor(::dup(shared.file_fd())), shared.description());
  expect_six(opened);
  ASSERT_NE(opened.train.set->file, nullptr);
  EXPECT_NE(opened.train.set->file, file) << "a mapping of its own, as in another process";
  EXPECT_EQ(opened.train.set->file->use(), MapUse::kPieces);
  EXPECT_THROW(open_shared_dataset(shared.fd(), FileDescriptor(), shared.description()), DataError);
}

TEST(SharedDataset, CopiesSamplesInMemory) {
  const auto set = std::make_shared<TensorDataset>(
      TensorDataset{{2}, std::vector<float>{1, 2, 3, 4}, std::vector<float>{5, 6}});
  Dataset dataset;
  dataset.shape = {2};
  dataset.target_names = {"y"};
  dataset.transform = {{0.1f, 0.2f}, {0.3f, 1}};
  dataset.train = {set, 0, 2};
  const SharedDataset shared(dataset);
  EXPECT_EQ(shared.file_fd(), -1);
  const Dataset opened = open_shared_dataset(shared.fd(), FileDescriptor(), shared.description());
  EXPECT_EQ(static_cast<const SampleFormat&>(opened), dataset);
  EXPECT_THAT(opened.train.set->floats(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(opened.train.set->numbers(), ElementsAre(5, 6));
  EXPECT_EQ(opened.train.order, nullptr);
  EXPECT_EQ(opened.train.set->file, nullptr);
}

}  // namespace sweep::message_socket_test
