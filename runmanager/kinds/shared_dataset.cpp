#include "runmanager/kinds/shared_dataset.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// The memory holds the arrays of all distinct SampleSets one after the other: samples, targets, order and
// targets in that order, each aligned. The description says where each array begins, and its type. Samples in
// a file stay there.
constexpr std::size_t kAlignment = 64;  // bytes: a cache line, and the widest SIMD vector

struct Mapping {
  Mapping(int fd, std::size_t size, int protection) : bytes(size) {
    if (size == 0) return;
    data = ::mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED)
      throw IoError(fmt::format("cannot map {} bytes of a data set: {}", size, std::strerror(errno)));
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (data != nullptr) ::munmap(data, bytes);
  }
  void* data = nullptr;
  std::size_t bytes = 0;
};

// Offsets of the arrays of one SampleSet, in bytes.
struct SetLayout {
  std::shared_ptr<const SampleSet> set;
  std::size_t samples = 0;  // in the file if set->file
  std::size_t targets = 0, order = 0, ordered_targets = 0;
};

std::size_t aligned(std::size_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

// Lays out the distinct sets of the dataset's parts, which mostly share one. Returns the size of the memory.
std::size_t lay_out(const Dataset& dataset, std::vector<SetLayout>& layouts) {
  std::size_t end = 0;
  for (const Samples* part : {&dataset.train, &dataset.validation, &dataset.test}) {
    const bool known = std::any_of(layouts.begin(), layouts.end(),
                                   [part](const SetLayout& layout) { return layout.set == part->set; });
    if (part->set == nullptr || known) continue;
    SetLayout& layout = layouts.emplace_back();
    layout.set = part->set;
    const SampleSet& set = *part->set;
    const auto place = [&](std::size_t bytes) { return std::exchange(end, aligned(end + bytes)); };
    const auto samples = bytes_of(set.samples);
    layout.samples = set.file
                         ? static_cast<std::size_t>(samples.data() - std::as_bytes(set.file->bytes()).data())
                         : place(samples.size());
    layout.targets = place(bytes_of(set.targets).size());
    layout.order = place(set.order.size() * sizeof(std::uint32_t));
    layout.ordered_targets = place(bytes_of(set.ordered_targets).size());
  }
  return end;
}

Json part_json(const Samples& part, const std::vector<SetLayout>& layouts) {
  Json set = nullptr;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (layouts[i].set == part.set) set = i;
  }
  return {{"set", set}, {"first", part.first}, {"count", part.count}};
}

// [type's index in the variant, offset in bytes, count].
template <typename Arrays>
Json array_json(std::size_t offset, const Arrays& array) {
  return {array.index(), offset, value_count(array)};
}

Json describe_dataset(const Dataset& dataset, const std::vector<SetLayout>& layouts, std::size_t bytes) {
  Json sets = Json::array(), files = Json::array();
  for (const SetLayout& layout : layouts) {
    sets.push_back({{"shape", layout.set->shape},
                    {"in_file", layout.set->file != nullptr},
                    {"samples", array_json(layout.samples, layout.set->samples)},
                    {"targets", array_json(layout.targets, layout.set->targets)},
                    {"order", {layout.order, layout.set->order.size()}},
                    {"ordered_targets", array_json(layout.ordered_targets, layout.set->ordered_targets)}});
  }
  for (const DataFile& file : dataset.files)
    files.push_back({{"path", file.path.string()}, {"sha256", file.sha256}});
  const bool has_file = !layouts.empty() && layouts.front().set->file != nullptr;
  const MapUse use = has_file ? layouts.front().set->file->use() : MapUse::kWhole;
  return {{"name", dataset.name},
          {"shape", dataset.shape},
          {"class_names", dataset.class_names},
          {"target_names", dataset.target_names},
          {"feature_names", dataset.feature_names},
          {"train", part_json(dataset.train, layouts)},
          {"validation", part_json(dataset.validation, layouts)},
          {"test", part_json(dataset.test, layouts)},
          {"mean", dataset.transform.mean},
          {"std", dataset.transform.std},
          {"files", std::move(files)},
          {"sets", std::move(sets)},
          {"bytes", bytes},
          {"file_use", use}};
}

// Memory, and what keeps it mapped.
struct Memory {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

// The array keeps the mapping alive.
template <typename T>
MaybeOwnedArray<T> mapped_array(const Memory& memory, std::size_t offset, std::size_t count) {
  if (count == 0) return {};
  if (offset > memory.bytes.size() || count > (memory.bytes.size() - offset) / sizeof(T))
    throw DataError("a shared data set is larger than its memory");
  const auto* first = reinterpret_cast<const T*>(memory.bytes.data() + offset);
  return {std::span<const T>(first, count), memory.owner};
}

// `layout`: see array_json(). First and Second are the types of the variant.
template <typename First, typename Second>
std::variant<MaybeOwnedArray<First>, MaybeOwnedArray<Second>> mapped_arrays(const Memory& memory,
                                                                            const Json& layout) {
  const auto offset = layout.at(1).get<std::size_t>(), count = layout.at(2).get<std::size_t>();
  if (layout.at(0) == 0) return mapped_array<First>(memory, offset, count);
  return mapped_array<Second>(memory, offset, count);
}

// `file` may be null.
Dataset dataset_of(const std::shared_ptr<const Mapping>& mapping,
                   const std::shared_ptr<const MappedFile>& file, const Json& description) {
  const Memory memory{{static_cast<const std::byte*>(mapping->data), mapping->bytes}, mapping};
  std::vector<std::shared_ptr<const SampleSet>> sets;
  for (const Json& json : description.at("sets")) {
    auto set = std::make_shared<SampleSet>();
    set->shape = json.at("shape").get<Shape>();
    if (json.at("in_file").get<bool>()) {
      if (!file) throw DataError("a shared data set lacks its file");
      set->file = file;
      set->samples =
          mapped_arrays<std::uint8_t, float>({std::as_bytes(file->bytes()), file}, json.at("samples"));
    } else {
      set->samples = mapped_arrays<std::uint8_t, float>(memory, json.at("samples"));
    }
    set->targets = mapped_arrays<std::int32_t, float>(memory, json.at("targets"));
    const Json& order = json.at("order");
    set->order =
        mapped_array<std::uint32_t>(memory, order.at(0).get<std::size_t>(), order.at(1).get<std::size_t>());
    set->ordered_targets = mapped_arrays<std::int32_t, float>(memory, json.at("ordered_targets"));
    sets.push_back(std::move(set));
  }
  const auto part = [&](const char* name) {
    const Json& json = description.at(name);
    Samples samples;
    if (!json.at("set").is_null()) samples.set = sets.at(json.at("set").get<std::size_t>());
    samples.first = json.at("first").get<std::size_t>();
    samples.count = json.at("count").get<std::size_t>();
    return samples;
  };
  Dataset dataset;
  dataset.name = description.at("name").get<std::string>();
  dataset.shape = description.at("shape").get<Shape>();
  dataset.class_names = description.at("class_names").get<std::vector<std::string>>();
  dataset.target_names = description.at("target_names").get<std::vector<std::string>>();
  dataset.feature_names = description.at("feature_names").get<std::vector<std::string>>();
  dataset.train = part("train");
  dataset.validation = part("validation");
  dataset.test = part("test");
  dataset.transform.mean = description.at("mean").get<std::vector<float>>();
  dataset.transform.std = description.at("std").get<std::vector<float>>();
  for (const Json& json : description.at("files")) {
    dataset.files.push_back({json.at("path").get<std::string>(), json.at("sha256").get<std::string>()});
  }
  return dataset;
}

}  // namespace

SharedDataset::SharedDataset(const Dataset& dataset) {
  std::vector<SetLayout> layouts;
  const std::size_t bytes = lay_out(dataset, layouts);
  fd_ = ::memfd_create("sweep-data", MFD_CLOEXEC);
  // Allocated now, because a write to a mapping without memory behind it would end the process with SIGBUS.
  int error = fd_ < 0 ? errno : bytes == 0 ? 0 : EINTR;
  while (error == EINTR) error = ::posix_fallocate(fd_, 0, static_cast<off_t>(bytes));
  if (error != 0) {
    if (fd_ >= 0) ::close(fd_);
    throw IoError(fmt::format("cannot get {} bytes of memory for data set {}: {}", bytes, dataset.name,
                              std::strerror(error)));
  }
  try {
    const Mapping writable(fd_, bytes, PROT_READ | PROT_WRITE);
    for (const SetLayout& layout : layouts) {
      char* base = static_cast<char*>(writable.data);
      const auto copy = [base](std::size_t offset, std::span<const std::byte> values) {
        if (!values.empty()) std::memcpy(base + offset, values.data(), values.size());
      };
      const SampleSet& set = *layout.set;
      if (set.file) {
        file_ = set.file;
      } else {
        copy(layout.samples, bytes_of(set.samples));
      }
      copy(layout.targets, bytes_of(set.targets));
      copy(layout.order, std::as_bytes(std::span(set.order.data(), set.order.size())));
      copy(layout.ordered_targets, bytes_of(set.ordered_targets));
    }
    description_ = describe_dataset(dataset, layouts, bytes);
    dataset_ = dataset_of(std::make_shared<const Mapping>(fd_, bytes, PROT_READ), file_, description_);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

SharedDataset::SharedDataset(SharedDataset&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      file_(std::move(other.file_)),
      description_(std::move(other.description_)),
      dataset_(std::move(other.dataset_)) {}

SharedDataset::~SharedDataset() {
  if (fd_ >= 0) ::close(fd_);
}

Dataset open_shared_dataset(int fd, FileDescriptor file, const Json& description) {
  try {
    const auto bytes = description.at("bytes").get<std::size_t>();
    struct stat info {};
    // Reading a mapping beyond the end of its file would end the process with SIGBUS.
    if (::fstat(fd, &info) != 0 || static_cast<std::size_t>(info.st_size) < bytes)
      throw DataError("a shared data set is larger than its memory");
    std::shared_ptr<const MappedFile> mapped;
    if (file.get() >= 0)
      mapped = std::make_shared<const MappedFile>(std::move(file), description.at("file_use").get<MapUse>());
    return dataset_of(std::make_shared<const Mapping>(fd, bytes, PROT_READ), mapped, description);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("not the description of a shared data set: {}", error.what()));
  }
}

}  // namespace sweep
