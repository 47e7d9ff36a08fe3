#include "runmanager/kinds/shared_dataset.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/data/readers/safetensors/tensor_file.h"
#include "core/data/sample_format.h"
#include "core/json/json_text.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// The memory holds the arrays of all distinct SampleSets, "samples 0", "targets 0", and the distinct orders
// of their parts, "order 0"; see tensor_file.h. Samples in a file stay there.
constexpr const char* kName = "shared data set";
// It is in memory already. A process maps the pages that it reads: with `limit` few of them.
constexpr MapUse kUse = MapUse::kPieces;

FileDescriptor duplicate(int fd) {
  FileDescriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (copy.get() < 0) throw IoError(fmt::format("cannot open a shared data set: {}", std::strerror(errno)));
  return copy;
}

// The distinct pointers of the parts, which mostly share one, without null.
template <typename Pointer>
std::vector<Pointer> distinct(const Dataset& dataset, Pointer Subset::*member) {
  std::vector<Pointer> found;
  for (const Subset* part : {&dataset.train, &dataset.validation, &dataset.test}) {
    const Pointer& pointer = part->*member;
    if (pointer != nullptr && std::ranges::count(found, pointer) == 0) found.push_back(pointer);
  }
  return found;
}

template <typename Pointer>
Json place_of(const std::vector<Pointer>& all, const Pointer& pointer) {
  if (pointer == nullptr) return nullptr;
  return std::ranges::find(all, pointer) - all.begin();
}

// Writes the arrays to `fd`, and returns what else there is to know.
Json write_dataset(const Dataset& dataset, int fd) {
  const auto sets = distinct(dataset, &Subset::set);
  const auto orders = distinct(dataset, &Subset::order);
  TensorWriter writer(fd, "data set " + dataset.name);
  Json described = Json::array(), files = Json::array();
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const TensorDataset& set = *sets[i];
    Json& json = described.emplace_back(Json{{"shape", set.shape},
                                             {"samples", set.samples.index()},
                                             {"targets", set.targets.index()},
                                             {"count", set.size()}});
    if (set.file) {
      const auto* first = bytes_of(set.samples).data();
      json["offset"] = first - std::as_bytes(set.file->bytes()).data();
      json["file_use"] = set.file->use();
    } else {
      std::visit([&](const auto& span) { writer.add(fmt::format("samples {}", i), span); },
                 view(set.samples));
    }
    std::visit([&](const auto& span) { writer.add(fmt::format("targets {}", i), span); }, view(set.targets));
  }
  for (std::size_t i = 0; i < orders.size(); ++i)
    writer.add(fmt::format("order {}", i), std::span(*orders[i]));
  writer.finish({});
  for (const DataFile& file : dataset.files)
    files.push_back({{"path", file.path.string()}, {"sha256", file.sha256}});
  Json json = {
      {"name", dataset.name},      {"format", to_json(dataset)},   {"feature_names", dataset.feature_names},
      {"files", std::move(files)}, {"sets", std::move(described)}, {"orders", orders.size()}};
  for (const auto& [name, part] :
       {std::pair("train", &dataset.train), std::pair("validation", &dataset.validation),
        std::pair("test", &dataset.test)}) {
    json[name] = {{"set", place_of(sets, part->set)},
                  {"first", part->first},
                  {"count", part->count},
                  {"order", place_of(orders, part->order)}};
  }
  return json;
}

// `index` is that of the type in the variant.
template <typename First, typename Second>
std::variant<MaybeOwnedArray<First>, MaybeOwnedArray<Second>> mapped_array(const MappedTensors& memory,
                                                                           const std::string& name,
                                                                           const Json& index) {
  if (index == 0) return memory.array<First>(name);
  return memory.array<Second>(name);
}

std::shared_ptr<const TensorDataset> set_of(const MappedTensors& memory,
                                            const std::shared_ptr<const MappedFile>& file, const Json& json,
                                            std::size_t i) {
  auto set = std::make_shared<TensorDataset>();
  set->shape = json.at("shape").get<Shape>();
  const auto count = json.at("count").get<std::size_t>();
  if (json.contains("offset")) {
    if (!file) throw DataError("a shared data set lacks its file");
    const auto offset = json.at("offset").get<std::size_t>(), bytes = count * set->sample_values();
    if (offset > file->bytes().size() || bytes > file->bytes().size() - offset)
      throw DataError("a shared data set is larger than its file");
    set->file = file;
    set->samples = MaybeOwnedArray<std::uint8_t>(file->bytes().subspan(offset, bytes), file);
  } else {
    set->samples =
        mapped_array<std::uint8_t, float>(memory, fmt::format("samples {}", i), json.at("samples"));
  }
  set->targets = mapped_array<std::int32_t, float>(memory, fmt::format("targets {}", i), json.at("targets"));
  if (set->size() != count) throw DataError("a shared data set has another size than its memory");
  return set;
}

// `file` may be null.
Dataset dataset_of(const MappedTensors& memory, const std::shared_ptr<const MappedFile>& file,
                   const Json& description) {
  std::vector<std::shared_ptr<const TensorDataset>> sets;
  for (const Json& json : description.at("sets")) sets.push_back(set_of(memory, file, json, sets.size()));
  std::vector<std::shared_ptr<const std::vector<std::uint32_t>>> orders;
  while (orders.size() < description.at("orders").get<std::size_t>()) {
    const auto rows = memory.array<std::uint32_t>(fmt::format("order {}", orders.size()));
    orders.push_back(std::make_shared<const std::vector<std::uint32_t>>(rows.begin(), rows.end()));
  }
  const auto part = [&](const char* name) {
    const Json& json = description.at(name);
    Subset samples;
    if (!json.at("set").is_null()) samples.set = sets.at(json.at("set").get<std::size_t>());
    if (!json.at("order").is_null()) samples.order = orders.at(json.at("order").get<std::size_t>());
    samples.first = json.at("first").get<std::size_t>();
    samples.count = json.at("count").get<std::size_t>();
    return samples;
  };
  Dataset dataset;
  static_cast<SampleFormat&>(dataset) = sample_format_from_json(description.at("format"), kName);
  dataset.name = description.at("name").get<std::string>();
  dataset.feature_names = description.at("feature_names").get<std::vector<std::string>>();
  dataset.train = part("train");
  dataset.validation = part("validation");
  dataset.test = part("test");
  for (const Json& json : description.at("files")) {
    dataset.files.push_back({json.at("path").get<std::string>(), json.at("sha256").get<std::string>()});
  }
  return dataset;
}

}  // namespace

SharedDataset::SharedDataset(const Dataset& dataset) : fd_(::memfd_create("sweep-data", MFD_CLOEXEC)) {
  if (fd_.get() < 0) {
    throw IoError(fmt::format("cannot get memory for data set {}: {}", dataset.name, std::strerror(errno)));
  }
  description_ = write_dataset(dataset, fd_.get());
  for (const Subset* part : {&dataset.train, &dataset.validation, &dataset.test})
    if (part->set && part->set->file) file_ = part->set->file;
}

Dataset open_shared_dataset(int fd, FileDescriptor file, const Json& description) {
  try {
    std::shared_ptr<const MappedFile> mapped;
    const Json& sets = description.at("sets");
    const auto in_file = std::ranges::find_if(sets, [](const Json& set) { return set.contains("file_use"); });
    if (file.get() >= 0 && in_file != sets.end())
      mapped = std::make_shared<const MappedFile>(std::move(file), in_file->at("file_use").get<MapUse>());
    return dataset_of(MappedTensors(duplicate(fd), kUse, kName), mapped, description);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("not the description of a shared data set: {}", json_reason(error)));
  }
}

}  // namespace sweep
