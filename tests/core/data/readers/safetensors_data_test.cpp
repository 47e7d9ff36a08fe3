// Tensors of a safetensors file as a data set.

#include <fcntl.h>

#include "core/base/file.h"
#include "core/data/readers/readers.h"
#include "core/data/readers/safetensors/tensor_file.h"
#include "tests/support/data_files.h"
#include "tests/support/memory_file.h"

namespace sweep::safetensors_data_test {

TEST(SafetensorsData, HasNoLargeHeader) {
  EXPECT_THAT(message_of<DataError>([] {
                InputFile file =
                    test::input_file(test::safetensors_file(std::string((1 << 20) + 1, '{'), ""));
                read_safetensors_arrays(file);
              }),
              HasSubstr("its header has 1048577 bytes; that of a data set has at most 1048576"));
}

// Arrays that processes map: aligned, of the right type, and refused if the file is damaged.

template <typename T>
std::vector<T> values_of(const MaybeOwnedArray<T>& array) {
  return {array.begin(), array.end()};
}

class MappedTensorsTest : public testing::Test {
 protected:
  MappedTensorsTest() {
    const FileDescriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    TensorWriter writer(file.get(), path_);
    writer.add("bytes", std::span<const std::uint8_t>(std::array<std::uint8_t, 3>{1, 2, 3}));
    writer.add("labels", std::span<const std::int32_t>(std::array{-4, 5}));
    writer.add("floats", std::span<const float>(std::array{0.5f}));
    writer.finish({{"key", "value"}});
  }
  MappedTensors opened() const { return {open_regular_file(path_), MapUse::kWhole, "FILE"}; }

  const test::TemporaryDirectory folder_;
  const std::filesystem::path path_ = folder_ / "arrays";
};

TEST_F(MappedTensorsTest, AreAlignedAndOutliveTheirReader) {
  MaybeOwnedArray<std::int32_t> labels;
  MaybeOwnedArray<float> floats;
  {
    const MappedTensors tensors = opened();
    EXPECT_EQ(tensors.metadata().at("key"), "value");
    EXPECT_THAT(values_of(tensors.array<std::uint8_t>("bytes")), ElementsAre(1, 2, 3));
    labels = tensors.array<std::int32_t>("labels");
    floats = tensors.array<float>("floats");
  }
  EXPECT_THAT(values_of(labels), ElementsAre(-4, 5));
  EXPECT_THAT(values_of(floats), ElementsAre(0.5f));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(labels.data()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(floats.data()) % 64, 0u);
}

TEST_F(MappedTensorsTest, RefuseAnArrayOfAnotherNameOrSize) {
  const MappedTensors tensors = opened();
  EXPECT_EQ(tensors.find("nothing"), nullptr);
  EXPECT_THROW(tensors.array<std::uint8_t>("nothing"), DataError);
  EXPECT_THROW(tensors.array<std::int32_t>("bytes"), DataError);
}

TEST_F(MappedTensorsTest, RefuseOrReadEveryCutAndFlippedByteOfTheHeader) {
  const std::string right = read_file(path_);
  const auto try_to_read = [&](const std::string& content) {
    folder_.write("arrays", content);
    const MappedTensors tensors = opened();
    for (const char* name : {"bytes", "labels", "floats"}) {
      const TensorEntry* entry = tensors.find(name);
      if (entry != nullptr && entry->end > content.size()) ADD_FAILURE() << name << " is outside of the file";
    }
  };
  for (std::size_t size = 0; size < right.size(); size += size < 700 || size > 4000 ? 1 : 100)
    EXPECT_THROW(try_to_read(right.substr(0, size)), Error) << size;
  for (std::size_t i = 0; i < 700; ++i) {
    try {
      try_to_read(flipped(right, i, 4));
    } catch (const Error&) {
    }
  }
}

}  // namespace sweep::safetensors_data_test
