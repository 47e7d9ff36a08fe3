// Files as rows of JSON tables describe them.
#pragma once

#include <nlohmann/json.hpp>

#include "tests/support/image_files.h"

namespace sweep::test {

/// A safetensors file of tensors: the name, type, shape as text and values in hex of each, one after another.
inline std::string tensors_file(const nlohmann::json& tensors) {
  nlohmann::json header;
  std::string data;
  for (const nlohmann::json& tensor : tensors) {
    const std::size_t begin = data.size();
    data += from_hex(tensor.at(3));
    header[tensor.at(0).get<std::string>()] = {
        {"dtype", tensor.at(1)},
        {"shape", nlohmann::json::parse(tensor.at(2).get<std::string>())},
        {"data_offsets", {begin, data.size()}}};
  }
  return safetensors_file(header.dump(), data);
}

/// The file of a row: its format's header, or none, before the values, as "data" or in "hex"; or an archive;
/// or a picture, its height, width and colour; or records of CIFAR, the labels and the red of each; changed.
/// A text is itself, a number a picture of one gray pixel.
inline std::string content_of(const nlohmann::json& row) {
  if (row.is_string()) return row;
  if (row.is_number()) return png_file(flat_pixels(1, 1, {row.get<std::uint8_t>()}));
  const std::string data = row.value("data", "") + from_hex(row.value("hex", ""));
  std::string content = data;
  if (row.contains("npy"))
    content = npy_file(row.at("npy").at(0), row.at("npy").at(1), data, row.value("fortran", false));
  if (row.contains("idx")) content = idx(row.at("idx"), data);
  if (row.contains("header")) content = safetensors_file(row.at("header"), data);
  if (row.contains("tensors")) content = tensors_file(row.at("tensors"));
  if (row.contains("zip")) {
    std::vector<ZipMember> members;
    for (const nlohmann::json& member : row.at("zip"))
      members.push_back({member.at(0), content_of(member.at(1)), member.at(2)});
    content = zip_file(members, row.value("crc", 0u), row.value("size", 0u));
  }
  if (row.contains("png")) {
    const auto picture = row.at("png").get<std::vector<std::uint8_t>>();
    content = png_file(flat_pixels(picture[0], picture[1], {picture.begin() + 2, picture.end()}));
  }
  for (const nlohmann::json& record : row.value("cifar", nlohmann::json::array())) {
    for (const int byte : record) content += static_cast<char>(byte);
    content += std::string(1023, content.back()) + std::string(1024, 'g') + std::string(1024, 'b');
  }
  if (row.contains("replace")) {
    const std::string from = row.at("replace").at(0);
    content.replace(content.find(from), from.size(), row.at("replace").at(1).get<std::string>());
  }
  content.resize(content.size() - row.value("cut", std::size_t{0}));
  content += row.value("after", "");
  if (row.contains("gzip")) {  // in two members, of which the first has so many bytes, or in one
    const std::size_t first = row.at("gzip").is_number() ? row.at("gzip").get<std::size_t>() : 0;
    content = (first > 0 ? gzip(content.substr(0, first)) : "") + gzip(content.substr(first));
  }
  if (row.contains("set")) {  // a byte after some text
    const nlohmann::json& set = row.at("set");
    content.at(content.find(set.at(0).get<std::string>()) + set.at(1).get<std::size_t>()) =
        static_cast<char>(set.at(2).get<int>());
  }
  return content + row.value("after_all", "");
}

/// Writes files by their names below `folder`; null is a folder.
inline void write_files(const TemporaryDirectory& folder, const nlohmann::json& files) {
  for (const auto& [name, content] : files.items()) {
    if (content.is_null()) {
      std::filesystem::create_directories(folder / name);
    } else {
      folder.write(name, content_of(content));
    }
  }
}

}  // namespace sweep::test
