#include "runmanager/sweep/shared_dataset.h"

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

constexpr std::size_t kAlignment = 64;

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

// Where the arrays of one ImageSet lie.
struct Place {
  std::shared_ptr<const ImageSet> set;
  std::size_t pixels = 0, labels = 0;
};

std::size_t place_behind(std::size_t end, std::size_t bytes, std::size_t& begin) {
  begin = (end + kAlignment - 1) / kAlignment * kAlignment;
  return begin + bytes;
}

// The distinct sets of the parts, laid out one behind the other; returns the bytes of all.
std::size_t lay_out(const Dataset& dataset, std::vector<Place>& places) {
  std::size_t end = 0;
  for (const Samples* part : {&dataset.train, &dataset.validation, &dataset.test}) {
    const bool known = std::any_of(places.begin(), places.end(),
                                   [part](const Place& place) { return place.set == part->set; });
    if (part->set == nullptr || known) continue;
    Place& place = places.emplace_back();
    place.set = part->set;
    end = place_behind(end, part->set->pixels.size(), place.pixels);
    end = place_behind(end, part->set->labels.size() * sizeof(std::int32_t), place.labels);
  }
  return end;
}

Json part_json(const Samples& part, const std::vector<Place>& places) {
  Json set = nullptr;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].set == part.set) set = i;
  }
  return {{"set", set}, {"first", part.first}, {"count", part.count}};
}

Json describe_dataset(const Dataset& dataset, const std::vector<Place>& places, std::size_t bytes) {
  Json sets = Json::array(), files = Json::array();
  for (const Place& place : places) {
    sets.push_back({{"shape", place.set->shape},
                    {"pixels", {place.pixels, place.set->pixels.size()}},
                    {"labels", {place.labels, place.set->labels.size()}}});
  }
  for (const DataFile& file : dataset.files)
    files.push_back({{"path", file.path.string()}, {"sha256", file.sha256}});
  return {{"name", dataset.name},
          {"shape", dataset.shape},
          {"class_names", dataset.class_names},
          {"train", part_json(dataset.train, places)},
          {"validation", part_json(dataset.validation, places)},
          {"test", part_json(dataset.test, places)},
          {"mean", dataset.transform.mean},
          {"std", dataset.transform.std},
          {"files", std::move(files)},
          {"sets", std::move(sets)},
          {"bytes", bytes}};
}

template <typename T>
MaybeOwnedArray<T> array_of(const std::shared_ptr<const Mapping>& mapping, const Json& place) {
  const auto offset = place.at(0).get<std::size_t>(), count = place.at(1).get<std::size_t>();
  if (offset > mapping->bytes || count > (mapping->bytes - offset) / sizeof(T))
    throw DataError("a shared data set is larger than its memory");
  const auto* first =
      count == 0 ? nullptr : reinterpret_cast<const T*>(static_cast<const char*>(mapping->data) + offset);
  return {std::span<const T>(first, count), mapping};
}

Dataset dataset_of(const std::shared_ptr<const Mapping>& mapping, const Json& description) {
  std::vector<std::shared_ptr<const ImageSet>> sets;
  for (const Json& json : description.at("sets")) {
    auto set = std::make_shared<ImageSet>();
    set->shape = json.at("shape").get<Shape>();
    set->pixels = array_of<std::uint8_t>(mapping, json.at("pixels"));
    set->labels = array_of<std::int32_t>(mapping, json.at("labels"));
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
  dataset.train = part("train");
  dataset.validation = part("validation");
  dataset.test = part("test");
  dataset.transform.mean = description.at("mean").get<std::vector<float>>();
  dataset.transform.std = description.at("std").get<std::vector<float>>();
  for (const Json& file : description.at("files")) {
    dataset.files.push_back({file.at("path").get<std::string>(), file.at("sha256").get<std::string>()});
  }
  return dataset;
}

}  // namespace

SharedDataset::SharedDataset(const Dataset& dataset) {
  std::vector<Place> places;
  const std::size_t bytes = lay_out(dataset, places);
  fd_ = ::memfd_create("sweep-data", MFD_CLOEXEC);
  // Allocated at once: where there is too little memory, a write to the mapping would end the process.
  const int error = fd_ < 0 ? errno : bytes == 0 ? 0 : ::posix_fallocate(fd_, 0, static_cast<off_t>(bytes));
  if (error != 0) {
    if (fd_ >= 0) ::close(fd_);
    throw IoError(fmt::format("cannot get {} bytes of memory for data set {}: {}", bytes, dataset.name,
                              std::strerror(error)));
  }
  try {
    const Mapping writable(fd_, bytes, PROT_READ | PROT_WRITE);
    for (const Place& place : places) {
      char* base = static_cast<char*>(writable.data);
      const ImageSet& set = *place.set;
      if (!set.pixels.empty()) std::memcpy(base + place.pixels, set.pixels.data(), set.pixels.size());
      if (!set.labels.empty())
        std::memcpy(base + place.labels, set.labels.data(), set.labels.size() * sizeof(std::int32_t));
    }
    description_ = describe_dataset(dataset, places, bytes);
    dataset_ = open_shared_dataset(fd_, description_);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

SharedDataset::SharedDataset(SharedDataset&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      description_(std::move(other.description_)),
      dataset_(std::move(other.dataset_)) {}

SharedDataset::~SharedDataset() {
  if (fd_ >= 0) ::close(fd_);
}

Dataset open_shared_dataset(int fd, const Json& description) {
  try {
    const auto bytes = description.at("bytes").get<std::size_t>();
    struct stat info {};
    // Reading behind the end of the memory would end the process.
    if (::fstat(fd, &info) != 0 || static_cast<std::size_t>(info.st_size) < bytes)
      throw DataError("a shared data set is larger than its memory");
    return dataset_of(std::make_shared<const Mapping>(fd, bytes, PROT_READ), description);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("not the description of a shared data set: {}", error.what()));
  }
}

}  // namespace sweep
