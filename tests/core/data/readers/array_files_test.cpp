// Files of arrays: what is read of small ones, and one clear message for everything that is wrong.

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/data/readers/readers.h"
#include "core/data/safetensors.h"
#include "tests/support/data_files.h"
#include "tests/support/memory_file.h"

namespace sweep::array_files_test {

using nlohmann::json;
using test::from_hex;

// `tensors`: the name, type, shape and values of each, one after another.
std::string tensors_file(const json& tensors) {
  json header;
  std::string data;
  for (const json& tensor : tensors) {
    const std::size_t begin = data.size();
    data += from_hex(tensor.at(3));
    header[tensor.at(0).get<std::string>()] = {{"dtype", tensor.at(1)},
                                               {"shape", json::parse(tensor.at(2).get<std::string>())},
                                               {"data_offsets", {begin, data.size()}}};
  }
  return test::safetensors_file(header.dump(), data);
}

// The file of a row: its format's header, or none, before the values, as "data" or in "hex"; changed.
std::string content_of(const json& row) {
  const std::string data = row.value("data", "") + from_hex(row.value("hex", ""));
  std::string content = data;
  if (row.contains("npy"))
    content = test::npy_file(row.at("npy").at(0), row.at("npy").at(1), data, row.value("fortran", false));
  if (row.contains("idx")) content = test::idx(row.at("idx"), data);
  if (row.contains("header")) content = test::safetensors_file(row.at("header"), data);
  if (row.contains("tensors")) content = tensors_file(row.at("tensors"));
  if (row.contains("replace")) {
    const std::string from = row.at("replace").at(0);
    content.replace(content.find(from), from.size(), row.at("replace").at(1).get<std::string>());
  }
  content.resize(content.size() - row.value("cut", std::size_t{0}));
  content += row.value("after", "");
  return row.value("gzip", false) ? test::gzip(content) : content;
}

NamedArray read(const json& row) {
  const std::string content = content_of(row);
  if (row.at("reader") == "weights") {
    const NamedTensor tensor = parse_safetensors(content, "FILE").tensors.at(0);
    return {tensor.name, tensor.shape, tensor.values};
  }
  InputFile file = test::input_file(content);
  if (row.at("reader") == "npy") return read_npy(source_of(file));
  if (row.at("reader") == "idx") return read_idx(file, row.at("dimensions"));
  return read_safetensors_arrays(file).at(0);
}

void expect_array(const NamedArray& array, const json& gives) {
  EXPECT_EQ(array.name, gives.value("name", array.name));
  EXPECT_EQ(array.shape, gives.value("shape", array.shape));
  const char* const type = std::array{"bytes", "floats", "integers"}.at(array.values.index());
  ASSERT_TRUE(gives.contains(type)) << type;
  std::visit(
      [&](const auto& values) {
        using Values = std::vector<std::decay_t<decltype(*values.begin())>>;
        EXPECT_EQ(Values(values.begin(), values.end()), gives.at(type).get<Values>());
      },
      array.values);
}

// A row of array_files.json: a file, what its reader gives of its first array, or the whole "message" or a
// part that it "has".
TEST(ArrayFile, GivesWhatItsRowSays) {
  const json rows = json::parse(read_file(SWEEP_TEST_DATA "/array_files.json"));
  ASSERT_GE(rows.size(), 120u);
  for (const json& row : rows) {
    SCOPED_TRACE(row.dump());
    if (row.contains("gives")) {
      expect_array(read(row), row.at("gives"));
    } else {
      const std::string message = message_of<DataError>([&] { read(row); });
      EXPECT_EQ(message, row.value("message", message));
      EXPECT_THAT(message, HasSubstr(row.value("has", "")));
    }
  }
}

}  // namespace sweep::array_files_test
