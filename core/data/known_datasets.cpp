#include "core/data/known_datasets.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <system_error>

#include "core/base/error.h"
#include "core/base/suggest.h"
#include "core/data/readers/input_file.h"
#include "core/data/readers/readers.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFashionClasses[] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
constexpr std::string_view kDigits[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};

// Digests as of the files of Debian's dataset-fashion-mnist 0.0~git20200523.
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
// For CIFAR only the digests of the archives are published, in the checksums of TensorFlow Datasets for
// example.

// As batches.meta.txt has them.
constexpr std::string_view kCifar10Classes[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                "dog",      "frog",       "horse", "ship", "truck"};

// As fine_label_names.txt has them.
constexpr std::string_view kCifar100Classes[] = {
    "apple",      "aquarium_fish", "baby",         "bear",       "beaver",      "bed",         "bee",
    "beetle",     "bicycle",       "bottle",       "bowl",       "boy",         "bridge",      "bus",
    "butterfly",  "camel",         "can",          "castle",     "caterpillar", "cattle",      "chair",
    "chimpanzee", "clock",         "cloud",        "cockroach",  "couch",       "crab",        "crocodile",
    "cup",        "dinosaur",      "dolphin",      "elephant",   "flatfish",    "forest",      "fox",
    "girl",       "hamster",       "house",        "kangaroo",   "keyboard",    "lamp",        "lawn_mower",
    "leopard",    "lion",          "lizard",       "lobster",    "man",         "maple_tree",  "motorcycle",
    "mountain",   "mouse",         "mushroom",     "oak_tree",   "orange",      "orchid",      "otter",
    "palm_tree",  "pear",          "pickup_truck", "pine_tree",  "plain",       "plate",       "poppy",
    "porcupine",  "possum",        "rabbit",       "raccoon",    "ray",         "road",        "rocket",
    "rose",       "sea",           "seal",         "shark",      "shrew",       "skunk",       "skyscraper",
    "snail",      "snake",         "spider",       "squirrel",   "streetcar",   "sunflower",   "sweet_pepper",
    "table",      "tank",          "telephone",    "television", "tiger",       "tractor",     "train",
    "trout",      "tulip",         "turtle",       "wardrobe",   "whale",       "willow_tree", "wolf",
    "woman",      "worm"};
static_assert(std::size(kCifar100Classes) == 100);

constexpr KnownDataset kKnownDatasets[] = {
    {.name = "fashion-mnist",
     .format = "idx",
     .class_names = kFashionClasses,  // from the data set's README
     .shape = {1, 28, 28},
     .train_samples = 60000,
     .files = kIdxFiles,
     .digests = kFashionDigests,
     .source = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
     .package = "dataset-fashion-mnist"},
    {.name = "mnist",
     .format = "idx",
     .class_names = kDigits,
     .shape = {1, 28, 28},
     .train_samples = 60000,
     .files = kIdxFiles,
     .digests = kMnistDigests,
     .source = "https://ossci-datasets.s3.amazonaws.com/mnist/"},
    {.name = "cifar10",
     .format = "cifar10",
     .class_names = kCifar10Classes,
     .shape = {3, 32, 32},
     .train_samples = 50000,
     .files = kCifar10Files,
     .source = "https://www.cs.toronto.edu/~kriz/",
     .archive = {"cifar-10-binary.tar.gz",
                 "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}},
    {.name = "cifar100",
     .format = "cifar100",
     .class_names = kCifar100Classes,
     .shape = {3, 32, 32},
     .train_samples = 50000,
     .files = kCifar100Files,
     .source = "https://www.cs.toronto.edu/~kriz/",
     .archive = {"cifar-100-binary.tar.gz",
                 "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"}},
};

// Returns why `path` does not hold a data set in `format`, or in any format if that is empty; "" if it does.
std::string missing_reason(const fs::path& path, std::string_view format) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::status_known(status)) return "cannot open: " + error.message();
  if (!fs::exists(status)) return "no such directory";
  if (!fs::is_directory(status)) return "not a directory";
  if (format.empty()) return recognise_format(path) != nullptr ? "" : "holds no data of a known format";
  const DataFormat& row = require_format(format);
  return row.recognise(path) ? "" : "not " + std::string(row.description);
}

// The files of a known set, a line each.
std::string expected_files(const KnownDataset& known) {
  std::string text = " Its files, plain or compressed by gzip";
  text += known.digests.empty() ? ":" : ", with the SHA-256 of their content:";
  const std::size_t width = std::ranges::max(known.files, {}, &std::string_view::size).size();
  for (std::size_t i = 0; i < known.files.size(); ++i) {
    if (known.digests.empty())
      text += fmt::format("\n  {}", known.files[i]);
    else
      text += fmt::format("\n  {:{}}  {}", known.files[i], width, known.digests[i]);
  }
  if (known.archive.name.empty()) return text;
  return fmt::format("{}\nThey are in {}{}, whose SHA-256 is {}", text, known.source, known.archive.name,
                     known.archive.sha256);
}

}  // namespace

std::span<const KnownDataset> known_datasets() { return kKnownDatasets; }

std::span<const std::string> known_dataset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const KnownDataset& known : kKnownDatasets) list.emplace_back(known.name);
    return list;
  }();
  return names;
}

const KnownDataset* find_known_dataset(std::string_view name) {
  const auto* found = std::ranges::find(kKnownDatasets, name, &KnownDataset::name);
  return found == std::end(kKnownDatasets) ? nullptr : found;
}

std::string how_to_get(const KnownDataset& known) {
  return fmt::format("run `{} data get {}`", typed_program(), known.name) +
         (known.package.empty() ? "" : fmt::format(" or `apt-get install {}`", known.package));
}

fs::path user_cache_directory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && fs::path(cache).is_absolute()) return fs::path(cache) / "sweep";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return fs::path(home) / ".cache" / "sweep";
  return {};
}

fs::path decoded_folder() {
  const fs::path cache = user_cache_directory();
  return cache.empty() ? cache : cache / "decoded";
}

fs::path decoded_cache() {
  const char* size = std::getenv("SWEEP_CACHE_SIZE");
  return size != nullptr && std::string_view(size) == "0" ? fs::path() : decoded_folder();
}

CleanedCache clean_cache(const fs::path& folder) {
  CleanedCache cleaned;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    // "X.samples", and "X.samples.Y.tmp" of a writer that was killed.
    const std::string name = it->path().filename().string();
    const bool is_leftover = name.ends_with(".tmp") && name.find(".samples.") != std::string::npos;
    if (!name.ends_with(".samples") && !is_leftover) continue;
    std::error_code failed;  // or gone: another process may clean up as well
    const std::uintmax_t bytes = it->file_size(failed);
    if (!failed && fs::remove(it->path(), failed)) {
      ++cleaned.files;
      cleaned.bytes += bytes;
    }
    if (failed && failed != std::errc::no_such_file_or_directory)
      refuse<IoError>(it->path(), "cannot remove: {}", failed.message());
  }
  if (error && error != std::errc::no_such_file_or_directory)
    refuse<IoError>(folder, "cannot read: {}", error.message());
  return cleaned;
}

fs::path user_dataset_place(const std::string& name) {
  const fs::path cache = user_cache_directory();
  return cache.empty() ? fs::path() : cache / name;
}

std::vector<DatasetPlace> dataset_places(const std::string& name) {
  std::vector<DatasetPlace> places;
  const auto add = [&](const fs::path& path) { places.push_back({path.string(), path}); };
  const char* data = std::getenv("SWEEP_DATA");
  if (data != nullptr && *data != '\0') {
    add(fs::path(data) / name);
  } else {
    places.push_back({"$SWEEP_DATA/" + name, {}});
  }
  for (const char* system : {"/usr/share/datasets", "/usr/local/share/datasets"})
    add(fs::path(system) / name);
  if (const fs::path own = user_dataset_place(name); !own.empty()) add(own);
  return places;
}

fs::path find_dataset(const std::string& name, std::string_view format) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    throw ConfigError(
        fmt::format("the data set's name \"{}\" cannot be looked for: it must be a plain name such as "
                    "\"{}\", or come with a path",
                    name, known_datasets().front().name));
  }
  std::string message = fmt::format("data set \"{}\" not found. Looked in:\n", name);
  for (const DatasetPlace& place : dataset_places(name)) {
    const std::string reason =
        place.path.empty() ? "SWEEP_DATA is not set" : missing_reason(place.path, format);
    if (reason.empty()) return place.path;
    message += fmt::format("  {}: {}\n", place.shown, reason);
  }
  const KnownDataset* known = find_known_dataset(name);
  if (known != nullptr) {
    message += fmt::format("To get it, {}, or train with --yes; or", how_to_get(*known));
  } else {
    const std::string question = did_you_mean(nearest_name(name, known_dataset_names()), "Did");
    message += question.empty() ? "Either" : question + " Otherwise";
  }
  message += fmt::format(
      " put its files into one of these directories, or set SWEEP_DATA to the directory that holds \"{}\", "
      "or give the data set a \"path\".",
      name);
  throw DataError(known != nullptr ? message + expected_files(*known) : message);
}

}  // namespace sweep
