#include "core/data/data_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/data/epoch_orders.h"
#include "core/data/prefetcher.h"

namespace sweep {

namespace {

// Per worker. More would only cost memory: workers either keep ahead of the training or never will.
constexpr std::size_t kBatchesAhead = 2;

// Room for `count` samples' values in `all`, the values of `samples` samples.
template <typename Array>
Array room_for(const Array& all, std::size_t samples, std::size_t count) {
  const std::size_t per_sample = samples == 0 ? 0 : value_count(all) / samples;
  return std::visit(
      [&]<typename T>(const MaybeOwnedArray<T>&) { return Array(std::vector<T>(count * per_sample)); }, all);
}

// Copies the values of `rows` from `all`, those of `samples` samples.
template <typename Array>
void gather(Array& to, const Array& all, std::size_t samples, std::span<const std::uint32_t> rows) {
  std::visit(
      [&]<typename T>(const MaybeOwnedArray<T>& from) {
        T* out = std::get<MaybeOwnedArray<T>>(to).edit().data();
        const std::size_t per_sample = from.size() / samples;
        for (const std::uint32_t row : rows) {
          std::memcpy(out, from.data() + row * per_sample, per_sample * sizeof(T));
          out += per_sample;
        }
      },
      all);
}

void check_augment(std::span<const AugmentStep> steps, const Shape& shape) {
  if (steps.size() > kMaxAugmentSteps) {
    throw ConfigError(
        fmt::format("augment has {} changes, at most {} are possible", steps.size(), kMaxAugmentSteps));
  }
  if (shape.size() != 3) {
    throw ConfigError(fmt::format("augment changes images, [channels, height, width], but the samples are {}",
                                  to_string(shape)));
  }
  for (const AugmentStep& step : steps) {
    const bool has_amount = step.kind != AugmentKind::kHorizontalFlip;
    const std::int64_t most = std::min(shape[1], shape[2]);
    if (has_amount && (step.amount < 1 || step.amount > most)) {
      throw ConfigError(
          fmt::format("augment: got {} pixels of padding or size, want 1 to {}, the side of the images",
                      step.amount, most));
    }
  }
}

// Batches that a loader with so many worker threads, which copies them, has room for.
std::size_t buffer_count(std::size_t threads, std::size_t batches) {
  // One buffer more than are made ahead: the caller holds one. The prefetcher needs two.
  return threads == 0 ? 1 : std::max<std::size_t>(2, std::min(kBatchesAhead * threads + 1, batches));
}

}  // namespace

std::size_t loader_memory(std::size_t count, std::size_t sample_bytes, const LoaderOptions& options) {
  const std::size_t batch = std::clamp<std::size_t>(options.batch_size, 1, std::max<std::size_t>(count, 1));
  const std::size_t batches = (count + batch - 1) / batch;
  const std::size_t order = count * sizeof(std::uint32_t) * (options.shuffle ? 2 : 1);
  if (options.num_workers == 0 && options.augment.empty()) return order;
  const std::size_t threads = std::min(static_cast<std::size_t>(options.num_workers), batches);
  return order + buffer_count(threads, batches) * batch * (sample_bytes + sizeof(std::uint32_t));
}

class DataLoader::Implementation {
 public:
  Implementation(Subset samples, LoaderOptions options)
      : samples_(std::move(samples)), options_(std::move(options)) {
    check();
    batch_size_ = std::min(options_.batch_size, std::max<std::size_t>(samples_.count, 1));
    batch_count_ = (samples_.count + batch_size_ - 1) / batch_size_;
    if (options_.shuffle) {
      orders_.emplace(samples_.first, samples_.count, options_.seed, options_.repeat);
    } else {
      file_order_.resize(samples_.count);
      std::iota(file_order_.begin(), file_order_.end(), static_cast<std::uint32_t>(samples_.first));
      rows_ = file_order_;
      find_stored_rows();
    }
    const TensorDataset* set = samples_.set.get();
    if (set != nullptr && set->file && (options_.shuffle || samples_.order)) set->file->expect_random_reads();
    next_batch_ = batch_count_;  // nothing before begin_epoch()
    make_buffers();
  }

  const Subset& samples() const { return samples_; }
  const LoaderOptions& options() const { return options_; }
  std::size_t batch_count() const { return batch_count_; }

  void set_on_device(bool on_device) {
    if (on_device == on_device_) return;
    prefetcher_.reset();
    buffers_.clear();
    next_batch_ = batch_count_;
    on_device_ = on_device;
    make_buffers();
  }

  void begin_epoch(std::uint32_t epoch) {
    prefetcher_.reset();  // its threads read rows_
    if (orders_) {
      rows_ = orders_->of_epoch(epoch);
      find_stored_rows();
    }
    epoch_ = epoch;
    next_batch_ = 0;
    waited_ = std::chrono::steady_clock::duration::zero();
    start_workers();
    if (!prefetcher_) read_ahead(0);
  }

  const Batch* next() {
    const auto start = std::chrono::steady_clock::now();
    const Batch* batch = make_next();
    waited_ += std::chrono::steady_clock::now() - start;
    return batch;
  }

  double wait_seconds() const { return std::chrono::duration<double>(waited_).count(); }

 private:
  void check() const {
    if (options_.batch_size == 0) throw ConfigError("batch_size must be at least 1, found 0");
    if (options_.num_workers < 0)
      throw ConfigError(fmt::format("num_workers must be at least 0, found {}", options_.num_workers));
    if (samples_.order && !samples_.set) throw ConfigError("an order of samples without their set");
    const std::size_t size = samples_.order ? samples_.order->size()
                             : samples_.set ? samples_.set->size()
                                            : 0;
    if (samples_.first > size || samples_.count > size - samples_.first) {
      throw ConfigError(fmt::format("samples {} to {} were asked of a data set of {}", samples_.first,
                                    samples_.first + samples_.count, size));
    }
    if (samples_.order && samples_.set &&
        std::ranges::any_of(*samples_.order, [&](std::uint32_t row) { return row >= samples_.set->size(); }))
      throw ConfigError(
          fmt::format("the order of the samples has a row beyond the data set's {}", samples_.set->size()));
    if (size > std::numeric_limits<std::uint32_t>::max())
      throw ConfigError("a data set may have at most 2^32 - 1 samples");
    if (samples_.set && !options_.augment.empty()) check_augment(options_.augment, samples_.set->shape);
  }

  // More workers than batches would be idle.
  std::size_t threads() const {
    return std::min(static_cast<std::size_t>(options_.num_workers), batch_count_);
  }

  void make_buffers() {
    if (batch_count_ == 0 || on_device_ || (options_.num_workers == 0 && options_.augment.empty())) return;
    buffers_.resize(buffer_count(threads(), batch_count_));
    const TensorDataset& set = *samples_.set;
    for (TensorDataset& buffer : buffers_) {
      buffer = {set.shape, room_for(set.samples, set.size(), batch_size_),
                room_for(set.targets, set.size(), batch_size_)};
    }
    local_rows_.resize(batch_size_);
    std::iota(local_rows_.begin(), local_rows_.end(), 0u);
  }

  void start_workers() {
    if (buffers_.empty() || threads() == 0) return;
    try {
      prefetcher_.emplace(threads(), buffers_.size(), batch_count_,
                          [this](std::size_t batch, std::size_t slot) {
                            read_ahead(batch);
                            fill(buffers_[slot], batch);
                          });
    } catch (const Error& error) {
      throw ConfigError(fmt::format("num_workers = {}: {}", options_.num_workers, error.what()));
    }
  }

  void fill(TensorDataset& buffer, std::size_t batch) const {
    const TensorDataset& set = *samples_.set;
    gather(buffer.samples, set.samples, set.size(), stored_rows_of(batch));
    gather(buffer.targets, set.targets, set.size(), stored_rows_of(batch));
    if (options_.augment.empty()) return;
    AugmentKey key{.seed = options_.seed, .repeat = options_.repeat, .epoch = epoch_};
    const auto augment = [&](auto& typed) {
      std::span rest(typed.edit());
      for (const std::uint32_t row : rows_of(batch)) {
        key.sample = row;
        augment_image(rest.first(set.sample_values()), set.shape, options_.augment, key);
        rest = rest.subspan(set.sample_values());
      }
    };
    std::visit(augment, buffer.samples);
  }

  // Where the samples of rows_ are stored.
  void find_stored_rows() {
    if (!samples_.order) return;
    stored_rows_.resize(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) stored_rows_[i] = (*samples_.order)[rows_[i]];
  }

  // Has a file that is larger than memory read the samples of a batch, if there is such a batch.
  void read_ahead(std::size_t batch) const {
    const MappedFile* file = samples_.set ? samples_.set->file.get() : nullptr;
    if (file == nullptr || file->use() == MapUse::kWhole || batch >= batch_count_) return;
    const std::span<const std::byte> all = bytes_of(samples_.set->samples);
    const std::size_t bytes = samples_.set->sample_values() * value_bytes(samples_.set->samples);
    for (const std::uint32_t row : stored_rows_of(batch)) {
      const auto sample = all.subspan(row * bytes, bytes);
      file->will_need({reinterpret_cast<const std::uint8_t*>(sample.data()), sample.size()});
    }
  }

  std::span<const std::uint32_t> rows_of(std::size_t batch) const { return batch_of(rows_, batch); }
  std::span<const std::uint32_t> stored_rows_of(std::size_t batch) const {
    return batch_of(stored_rows_.empty() ? rows_ : std::span<const std::uint32_t>(stored_rows_), batch);
  }
  std::span<const std::uint32_t> batch_of(std::span<const std::uint32_t> rows, std::size_t batch) const {
    const std::size_t first = batch * batch_size_;
    return rows.subspan(first, std::min(batch_size_, rows.size() - first));
  }

  const Batch* make_next() {
    if (next_batch_ >= batch_count_) return nullptr;
    if (!prefetcher_) read_ahead(next_batch_ + 1);
    if (!buffers_.empty()) {
      std::optional<std::size_t> slot = 0;
      if (prefetcher_)
        slot = prefetcher_->next();
      else
        fill(buffers_.front(), next_batch_);
      if (!slot) return nullptr;
      const std::size_t count = rows_of(next_batch_).size();
      const TensorDataset& buffer = buffers_[*slot];
      batch_ = {view(buffer.samples, 0, count * buffer.sample_values()),
                view(buffer.targets, 0, value_count(buffer.targets) / batch_size_ * count),
                std::span<const std::uint32_t>(local_rows_).first(count), nullptr};
    } else {
      const TensorDataset& set = *samples_.set;
      batch_ = {view(set.samples), view(set.targets), stored_rows_of(next_batch_), samples_.set};
      batch_.augment = {options_.augment, rows_of(next_batch_), epoch_};
    }
    ++next_batch_;
    return &batch_;
  }

  const Subset samples_;
  const LoaderOptions options_;
  bool on_device_ = false;
  std::uint32_t epoch_ = 0;
  // At most samples_.count, so that no buffer is larger than the set.
  std::size_t batch_size_ = 0;
  std::size_t batch_count_ = 0;
  std::vector<std::uint32_t> file_order_;   // unless shuffled
  std::optional<EpochOrders> orders_;       // if shuffled
  std::span<const std::uint32_t> rows_;     // indices into the set, in the order of this epoch
  std::vector<std::uint32_t> stored_rows_;  // where they are stored; empty: at rows_
  std::vector<std::uint32_t> local_rows_;   // 0, 1, 2, …: Batch::indices of a gathered batch
  std::vector<TensorDataset> buffers_;      // of workers: batches they gather, allocated once
  Batch batch_;
  std::size_t next_batch_ = 0;
  std::chrono::steady_clock::duration waited_{};
  std::optional<Prefetcher> prefetcher_;  // last, destroyed first: its threads use the members above
};

DataLoader::DataLoader(Subset samples, LoaderOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(samples), std::move(options))) {}

DataLoader::~DataLoader() = default;

const Subset& DataLoader::samples() const { return implementation_->samples(); }
const LoaderOptions& DataLoader::options() const { return implementation_->options(); }
std::size_t DataLoader::batch_count() const { return implementation_->batch_count(); }
void DataLoader::set_on_device(bool on_device) { implementation_->set_on_device(on_device); }
void DataLoader::begin_epoch(std::uint32_t epoch) { implementation_->begin_epoch(epoch); }
const Batch* DataLoader::next() { return implementation_->next(); }
double DataLoader::wait_seconds() const { return implementation_->wait_seconds(); }

}  // namespace sweep
