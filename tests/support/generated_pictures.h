// Pictures that a network can learn, in the form of sets that cannot be had everywhere.
// tests/data/make_curves.py computes the same ones.
#pragma once

#include "tests/support/data_files.h"

namespace sweep::test {

/// Depends only on the arguments; 0 to 63.
inline unsigned noise(unsigned sample, unsigned y, unsigned x, unsigned channel = 0) {
  return (sample * 2654435761u ^ y * 40503u ^ x * 69069u ^ channel * 362437u) >> 7 & 63;
}

/// One of ten classes, in no regular order.
inline unsigned label_of(unsigned sample) { return (sample * 7 + sample / 10) % 10; }

/// A pixel of a digit of MNIST's form, 28x28: a bright bar on dark noise, whose place tells the class,
/// label_of().
inline unsigned digit_pixel(unsigned sample, unsigned y, unsigned x) {
  const unsigned label = label_of(sample);
  return noise(sample, y, x) / 2 + (x / 5 == label % 5 && y / 14 == label / 5 ? 150 : 0);
}

/// Digits `first` to `first` + `count` in the files of MNIST.
inline void write_digits(const std::filesystem::path& folder, const std::string& part, unsigned first,
                         unsigned count) {
  write_idx_set(
      folder, part, count, 28, [=](auto i, auto y, auto x) { return digit_pixel(first + i, y, x); },
      [=](auto i) { return label_of(first + i); });
}

/// A pixel of a pet of any size. Cats, the even samples, have stripes across, dogs upright ones.
inline unsigned pet_pixel(unsigned sample, unsigned y, unsigned x) {
  const unsigned along = sample % 2 == 1 ? x : y;
  return noise(sample, y, x) + (along / 8 % 2 == sample / 2 % 2 ? 140 : 40);
}

/// A pixel of a picture of CIFAR's form, 3x32x32. A class, label_of(), has one of five places, at which a
/// square is brighter than the noise around it, and one of two colours, red or blue. Who does not see the
/// colour gets half of them right.
inline unsigned cifar_pixel(unsigned sample, unsigned channel, unsigned y, unsigned x) {
  const unsigned label = label_of(sample), place = label / 2;
  const bool is_bright = channel == (label % 2 == 0 ? 0 : 2) && y / 8 == 1 + place % 2 && x / 6 == place;
  return noise(sample, y, x, channel) + (is_bright ? 100 : 0);
}

/// Records `first` to `first` + `count` as CIFAR-10's files have them: a byte of the label, then 1024 bytes
/// each of red, green and blue.
inline std::string cifar_records(unsigned first, unsigned count) {
  std::string bytes;
  bytes.reserve(count * 3073);
  for (unsigned i = first; i < first + count; ++i) {
    bytes += static_cast<char>(label_of(i));
    for (unsigned c = 0; c < 3; ++c) {
      for (unsigned y = 0; y < 32; ++y) {
        for (unsigned x = 0; x < 32; ++x) bytes += static_cast<char>(cifar_pixel(i, c, y, x));
      }
    }
  }
  return bytes;
}

/// Writes the eight files of CIFAR-10 with `write(name, bytes)`: data_batch_1.bin to data_batch_5.bin of
/// `per_batch` records, test_batch.bin of others, batches.meta.txt and readme.html.
template <typename Write>
void write_cifar10(const Write& write, unsigned per_batch) {
  for (unsigned batch = 0; batch < 5; ++batch)
    write("data_batch_" + std::to_string(batch + 1) + ".bin", cifar_records(batch * per_batch, per_batch));
  write("test_batch.bin", cifar_records(5 * per_batch, per_batch));
  write("batches.meta.txt",
        std::string("airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n"));
  write("readme.html", std::string("<html></html>\n"));
}

}  // namespace sweep::test
