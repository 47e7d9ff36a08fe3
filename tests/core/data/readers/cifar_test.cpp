// CIFAR-10 and CIFAR-100 in their binary versions.
#include "core/data/readers/readers.h"

#include "core/data/data_from_arrays.h"
#include "tests/support/data_files.h"

namespace sweep::cifar_test {

constexpr const char* kNames = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";

// A record of CIFAR-10: label, then planes of red, green and blue.
std::string record(int label, char red) {
  return static_cast<char>(label) + std::string(1024, red) + std::string(1024, 'g') + std::string(1024, 'b');
}

void write_cifar10(const TemporaryDirectory& directory, const std::string& folder = "") {
  for (int batch = 1; batch <= 5; ++batch) {
    directory.write(folder + "data_batch_" + std::to_string(batch) + ".bin",
                    record(batch, static_cast<char>('0' + batch)) + record(9, 'x'));
  }
  directory.write(folder + "test_batch.bin", record(3, 't'));
  directory.write(folder + "batches.meta.txt", kNames);
}

Dataset read(const fs::path& path) {
  return data_from_arrays(read_cifar10(std::span(&path, 1), {}), {}, path.string());
}

using Cifar = test::InDirectory;

TEST_F(Cifar, ReadsTheFiveBatchesAndTheTestBatch) {
  write_cifar10(directory);
  const Dataset data = read(directory.path());
  EXPECT_EQ(data.shape, (Shape{3, 32, 32}));
  EXPECT_EQ(data.class_names[3], "cat");
  EXPECT_THAT(data.train.labels(), ElementsAre(1, 9, 2, 9, 3, 9, 4, 9, 5, 9));
  const auto bytes = data.train.set->pixels();
  EXPECT_EQ(bytes[0], '1');
  EXPECT_EQ(bytes[2 * 3072], '2');
  EXPECT_EQ(bytes[1024], 'g');
  EXPECT_EQ(bytes[3071], 'b');
  EXPECT_THAT(data.test.labels(), ElementsAre(3));
  EXPECT_EQ(data.files.size(), 6u);
  EXPECT_EQ(data.files[5].path, directory / "test_batch.bin");
  EXPECT_TRUE(is_cifar10(directory.path()));
  EXPECT_FALSE(is_cifar100(directory.path()));
}

TEST_F(Cifar, FindsTheFolderOfTheArchiveAndCompressedBatches) {
  write_cifar10(directory, "cifar-10-batches-bin/");
  directory.write("cifar-10-batches-bin/data_batch_2.bin", test::gzip(record(2, 'z')));
  EXPECT_TRUE(is_cifar10(directory.path()));
  EXPECT_THAT(read(directory.path()).train.labels(), ElementsAre(1, 9, 2, 3, 9, 4, 9, 5, 9));
}

TEST_F(Cifar, ReadsTheFineLabelsOfCifar100) {
  directory.write("train.bin", '\x05' + record(99, 'r') + '\x01' + record(0, 'r'));
  directory.write("test.bin", '\x05' + record(7, 'r'));
  const fs::path path = directory.path();
  const Dataset data = data_from_arrays(read_cifar100(std::span(&path, 1), {}), {}, path.string());
  EXPECT_THAT(data.train.labels(), ElementsAre(99, 0));
  EXPECT_THAT(data.test.labels(), ElementsAre(7));
  EXPECT_EQ(data.class_names.size(), 100u);
  EXPECT_EQ(data.class_names[42], "42");
  EXPECT_TRUE(is_cifar100(directory.path()));
  directory.write("train.bin", '\x05' + record(100, 'r'));
  EXPECT_FALSE(is_cifar100(directory.path())) << "there are labels from 0 to 99";
}

TEST_F(Cifar, RefusesFilesThatAreMissingOrWrong) {
  write_cifar10(directory);
  const std::string folder = directory.path().string();
  const auto error = [&] { return message_of<DataError>([&] { read(directory.path()); }); };
  directory.write("batches.meta.txt", "cat\ndog\n");
  EXPECT_EQ(error(), folder + "/batches.meta.txt: holds 2 names of classes, expected 10");
  write_cifar10(directory);
  directory.write("data_batch_3.bin", record(10, 'r'));
  EXPECT_EQ(error(), folder + "/data_batch_3.bin: label 10 of sample 0 (from 0) is out of range: 0 to 9");
  directory.write("data_batch_3.bin", record(1, 'r') + record(1, 'r').substr(1));
  EXPECT_EQ(error(),
            folder + "/data_batch_3.bin: holds 6145 bytes, which is not a number of records of 3073 bytes");
  fs::remove(directory / "data_batch_2.bin");
  fs::remove(directory / "data_batch_4.bin");
  EXPECT_EQ(error(), folder + ": misses data_batch_2.bin, data_batch_4.bin");
}

}  // namespace sweep::cifar_test
