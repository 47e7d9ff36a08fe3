// Data sets that processes share: the same samples in the same order, whether they lie in memory or in a
// file.
#include "runmanager/kinds/shared_dataset.h"

#include <unistd.h>

#include "tests/support/test.h"

namespace sweep::shared_dataset_test {

// Six samples of two bytes, in another order than they are stored; four to train on, two to test.
Dataset dataset_in(std::shared_ptr<const MappedFile> file) {
  auto set = std::make_shared<TensorDataset>();
  set->shape = {2};
  const auto bytes = file->bytes().subspan(3, 12);
  set->samples = MaybeOwnedArray<std::uint8_t>(bytes, file);
  set->targets = std::vector<std::int32_t>{0, 0, 1, 0, 1, 1};
  set->file = std::move(file);
  Dataset dataset;
  dataset.name = "six";
  dataset.shape = {2};
  dataset.class_names = {"a", "b"};
  const auto order =
      std::make_shared<const std::vector<std::uint32_t>>(std::vector<std::uint32_t>{5, 0, 4, 1, 3, 2});
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
  expect_six(shared.dataset());
  EXPECT_EQ(shared.dataset().train.set->pixels().data(), file->bytes().data() + 3);

  const Dataset opened =
      open_shared_dataset(shared.fd(), FileDescriptor(::dup(shared.file_fd())), shared.description());
  expect_six(opened);
  ASSERT_NE(opened.train.set->file, nullptr);
  EXPECT_NE(opened.train.set->file, file) << "a mapping of its own, as in another process";
  EXPECT_EQ(opened.train.set->file->use(), MapUse::kPieces);
  EXPECT_THROW(open_shared_dataset(shared.fd(), FileDescriptor(), shared.description()), DataError);
}

TEST(SharedDataset, CopiesSamplesInMemory) {
  auto set = std::make_shared<TensorDataset>();
  set->shape = {2};
  set->samples = std::vector<float>{1, 2, 3, 4};
  set->targets = std::vector<float>{5, 6};
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

}  // namespace sweep::shared_dataset_test
