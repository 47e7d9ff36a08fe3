#include "core/data/known_datasets.h"

#include <algorithm>

namespace sweep {
namespace {

constexpr std::string_view kFashionClasses[] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
constexpr std::string_view kDigits[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};

// Files of Debian's dataset-fashion-mnist 0.0~git20200523: images and labels to train on, then those to test.
constexpr std::string_view kFashionDigests[] = {
    "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"};
constexpr std::string_view kMnistDigests[] = {
    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"};
// As batches.meta.txt has them.
constexpr std::string_view kCifar10Classes[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                "dog",      "frog",       "horse", "ship", "truck"};

constexpr KnownDataset kKnownDatasets[] = {
    {.name = "fashion-mnist",
     .format = "idx",
     .class_names = kFashionClasses,  // from the data set's README
     .shape = {1, 28, 28},
     .train_samples = 60000,
     .sha256 = kFashionDigests,
     .how_to_get = "install it with `apt-get install dataset-fashion-mnist`"},
    {.name = "mnist",
     .format = "idx",
     .class_names = kDigits,
     .shape = {1, 28, 28},
     .train_samples = 60000,
     .sha256 = kMnistDigests,
     .how_to_get = "download its four files from https://ossci-datasets.s3.amazonaws.com/mnist/"},
    {.name = "cifar10",
     .format = "cifar10",
     .class_names = kCifar10Classes,
     .shape = {3, 32, 32},
     .train_samples = 50000,
     .sha256 = {},
     .how_to_get = "download https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz and unpack it"},
};

}  // namespace

std::span<const KnownDataset> known_datasets() { return kKnownDatasets; }

const KnownDataset* find_known_dataset(std::string_view name) {
  const auto* found = std::find_if(std::begin(kKnownDatasets), std::end(kKnownDatasets),
                                   [&](const KnownDataset& known) { return known.name == name; });
  return found == std::end(kKnownDatasets) ? nullptr : found;
}

}  // namespace sweep
