// How long libjpeg-turbo alone takes for the pictures of a folder, for comparison with `sweep data FOLDER`,
// which also resizes, hashes and keeps them; and folders to measure it with.
//   decode_benchmark generate FOLDER COUNT   writes COUNT pictures of 100 to 500 pixels a side, in two
//   classes decode_benchmark decode FOLDER THREADS   decodes each to gray, at 1/1 to 1/8 as a result of 50 x
//   50 allows
#include <cstdio>
// After <cstdio>, which it needs.
#include <jpeglib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

constexpr unsigned kDifferent = 500;  // pictures; more of them are copies, as decoding one takes as long
constexpr unsigned kResult = 50;      // pixels of a side

// A picture in colour with edges, gradients and some noise, as photographs have.
Bytes jpeg_file(unsigned seed) {
  std::mt19937 numbers(seed);
  const auto random = [&](unsigned bound) { return static_cast<unsigned>(numbers() % bound); };
  const unsigned width = 100 + random(401), height = 100 + random(401);
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 85, TRUE);
  jpeg_start_compress(&info, TRUE);
  Bytes row(width * 3);
  const unsigned edge = 20 + random(60);
  for (unsigned y = 0; y < height; ++y) {
    for (unsigned x = 0; x < width; ++x) {
      const unsigned shape = (x / edge + y / edge) % 2 * 70 + x * 60 / width + y * 40 / height;
      for (unsigned c = 0; c < 3; ++c)
        row[x * 3 + c] = static_cast<std::uint8_t>(shape + 25 * c + random(32));
    }
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  Bytes file(memory, memory + size);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return file;
}

void generate(const fs::path& folder, unsigned count) {
  std::vector<Bytes> files;
  for (unsigned i = 0; i < std::min(count, kDifferent); ++i) files.push_back(jpeg_file(i));
  for (const char* name : {"cat", "dog"}) fs::create_directories(folder / name);
  for (unsigned i = 0; i < count; ++i) {
    const Bytes& bytes = files[i % files.size()];
    std::ofstream out(folder / (i % 2 == 0 ? "cat" : "dog") / (std::to_string(i) + ".jpg"), std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!out) throw std::runtime_error("cannot write below " + folder.string());
  }
}

void decode_file(const fs::path& path, Bytes& row) {
  std::ifstream in(path, std::ios::binary);
  const Bytes bytes{std::istreambuf_iterator<char>(in), {}};
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes.data(), bytes.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_GRAYSCALE;
  info.scale_num = 1;
  info.scale_denom = 1;
  for (const unsigned scale : {2u, 4u, 8u}) {
    if (std::min(info.image_width, info.image_height) / scale >= 2 * kResult) info.scale_denom = scale;
  }
  jpeg_start_decompress(&info);
  row.resize(info.output_width);
  while (info.output_scanline < info.output_height) {
    JSAMPROW rows = row.data();
    jpeg_read_scanlines(&info, &rows, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
}

void decode(const fs::path& folder, unsigned threads) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      Bytes row;
      for (std::size_t file = next++; file < files.size(); file = next++) decode_file(files[file], row);
    });
  }
  for (std::thread& worker : workers) worker.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::cout << files.size() << " pictures on " << threads << " threads: " << seconds.count() << " s\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc == 4 ? argv[1] : "";
  if (command == "generate") {
    generate(argv[2], static_cast<unsigned>(std::stoul(argv[3])));
  } else if (command == "decode") {
    decode(argv[2], static_cast<unsigned>(std::stoul(argv[3])));
  } else {
    std::cerr << "decode_benchmark generate FOLDER COUNT | decode FOLDER THREADS\n";
    return 2;
  }
  return 0;
}
