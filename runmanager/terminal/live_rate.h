// The speed of training, averaged long enough for people to read.
#pragma once

#include <optional>

namespace sweep {

/// Batches and samples per second, each over a second or more of the time that counts. Times in seconds of
/// one clock. Not thread-safe.
class LiveRate {
 public:
  struct Rates {
    double batches = 0, samples = 0;  // per second
  };

  /// Time counts from `now` on.
  void resume(double now) { since_ = now; }
  /// Time counts no more until resume().
  void pause(double now) {
    if (since_) seconds_ += now - *since_;
    since_.reset();
  }
  /// Adds finished batches and their samples.
  void add(double batches, double samples, double now) {
    counted_.batches += batches;
    counted_.samples += samples;
    const double seconds = seconds_ + (since_ ? now - *since_ : 0);
    if (seconds < kShortest) return;
    rates_ = {counted_.batches / seconds, counted_.samples / seconds};
    counted_ = {};
    seconds_ = 0;
    if (since_) since_ = now;
  }
  /// The latest rates; none before the first second is over.
  const std::optional<Rates>& latest() const { return rates_; }

 private:
  static constexpr double kShortest = 1;
  std::optional<double> since_;
  std::optional<Rates> rates_;
  double seconds_ = 0;  // since the latest rates, and before since_
  Rates counted_;       // since the latest rates; not yet divided
};

}  // namespace sweep
