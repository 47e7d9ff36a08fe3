#include "core/data/readers/readers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <iterator>
#include <utility>

#include "core/base/error.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::uint8_t kUnsignedByte = 0x08;

// Of other values than unsigned bytes.
constexpr std::pair<std::uint8_t, const char*> kOtherTypes[] = {{0x09, "signed bytes"},
                                                                {0x0b, "16-bit integers"},
                                                                {0x0c, "32-bit integers"},
                                                                {0x0d, "32-bit floats"},
                                                                {0x0e, "64-bit floats"}};

std::string content_name(std::size_t dimensions) {
  if (dimensions == 1) return "labels, 1 dimension";
  if (dimensions == 3) return "images, 3 dimensions";
  return std::to_string(dimensions) + " dimensions";
}

void check_magic(std::span<const std::uint8_t, 4> magic, const std::string& name, std::size_t dimensions) {
  const std::array<std::uint8_t, 4> expected = {0, 0, kUnsignedByte, static_cast<std::uint8_t>(dimensions)};
  if (std::memcmp(magic.data(), expected.data(), 4) == 0) return;
  const std::string found = hexadecimal(magic, " "),
                    wanted =
                        fmt::format("expected {} ({})", hexadecimal(expected, " "), content_name(dimensions));
  if (magic[0] != 0 || magic[1] != 0)
    refuse(name, "not an IDX file: it starts with the bytes {}, {}", found, wanted);
  for (const auto& [code, type] : kOtherTypes) {
    if (magic[2] == code)
      refuse(name, "holds {} (magic number {}), but only unsigned bytes can be read; {}", type, found,
             wanted);
  }
  if (magic[2] == kUnsignedByte)
    refuse(name, "holds {} (magic number {}), {}", content_name(magic[3]), found, wanted);
  refuse(name, "wrong magic number {}, {}", found, wanted);
}

// Returns the file of that name in `directory`, plain or compressed, or an empty path.
fs::path find_file(const fs::path& directory, std::string_view name) {
  std::string dotted(name);  // Some copies on the web are called train-images.idx3-ubyte.
  dotted.replace(dotted.rfind("-idx"), 1, ".");
  for (const std::string& base : {std::string(name), dotted}) {
    for (const char* extension : {"", ".gz"}) {
      std::error_code error;
      fs::path path = directory / (base + extension);
      if (fs::exists(path, error)) return path;
    }
  }
  return {};
}

// Adds the array of one file to `data`.
void read_file(const fs::path& path, const std::string& name, std::size_t dimensions, DataArrays& data) {
  InputFile file(path);
  data.arrays.push_back(read_idx(file, dimensions));
  data.arrays.back().name = name;
  data.files.push_back({path, file.sha256()});
}

// The images, then the labels, of two of kIdxFiles.
DataArrays read_part(const fs::path& directory, std::span<const std::string_view> names,
                     const std::string& part) {
  std::array<fs::path, 2> paths;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    paths[i] = find_file(directory, names[i]);
    if (paths[i].empty()) refuse(directory, "has no {0} or {0}.gz", names[i]);
  }
  DataArrays data;
  read_file(paths[0], "x_" + part, 3, data);
  read_file(paths[1], "y_" + part, 1, data);
  return data;
}

}  // namespace

bool is_idx(const fs::path& path) {
  using namespace std::string_view_literals;
  std::error_code error;
  if (fs::is_directory(path, error)) return !find_file(path, kIdxFiles[0]).empty();
  return first_bytes(path, 4) == "\0\0\x08\x03"sv;
}

DataArrays read_idx_dataset(std::span<const fs::path> paths, const ReadOptions&) {
  const fs::path& path = only_path(paths, "idx");
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    DataArrays data;
    read_file(path, "images", 3, data);
    return data;
  }
  const std::span<const std::string_view> files = kIdxFiles;
  // The test part is inflated next to the training part. With the default launch policy, a machine that has
  // no thread to give does it here. Whatever it uses has to be there until it is destroyed, which waits for
  // it.
  std::future<DataArrays> test_part;
  if (!find_file(path, files[2]).empty() || !find_file(path, files[3]).empty())
    test_part = std::async([&] { return read_part(path, files.last(2), "test"); });
  DataArrays data = read_part(path, files.first(2), "train");
  if (!test_part.valid()) return data;
  DataArrays test = test_part.get();
  std::ranges::move(test.arrays, std::back_inserter(data.arrays));
  std::ranges::move(test.files, std::back_inserter(data.files));
  return data;
}

NamedArray read_idx(InputFile& file, std::size_t dimensions) {
  std::vector<std::uint8_t> header(4 + 4 * dimensions);
  const std::size_t header_read = file.read(header);
  if (header_read == 0) refuse(file.name(), "is empty, expected an IDX file");
  if (header_read >= 4) check_magic(std::span(header).first<4>(), file.name(), dimensions);
  if (header_read < header.size()) {
    refuse(file.name(), "is cut short: its content ends after {} bytes, the header alone has {}", header_read,
           header.size());
  }
  ArrayLayout layout;
  for (std::size_t at = 4; at < header.size(); at += 4) {
    const auto extent = std::uint32_t{header[at]} << 24 | std::uint32_t{header[at + 1]} << 16 |
                        std::uint32_t{header[at + 2]} << 8 | header[at + 3];
    layout.shape.push_back(extent);
  }
  const ByteSource source = source_of(file);
  NamedArray array = read_array(source, layout);
  array.where = file.name();
  require_end(source, layout.shape);
  return array;
}

}  // namespace sweep
