// How fast something goes on, over long enough a time that the number can be read.
#pragma once

#include <optional>

namespace sweep {

/// Counts per second, each over a second or more of the time that counts. Times in seconds of one clock. Not
/// thread-safe.
class LiveRate {
 public:
  /// Time counts from `now` on.
  void resume(double now) { since_ = now; }
  /// Time counts no more until resume().
  void pause(double now) {
    if (since_) seconds_ += now - *since_;
    since_.reset();
  }
  /// `count` of the things measured are done.
  void add(double count, double now) {
    counted_ += count;
    const double seconds = seconds_ + (since_ ? now - *since_ : 0);
    if (seconds < kShortest) return;
    rate_ = counted_ / seconds;
    counted_ = seconds_ = 0;
    if (since_) since_ = now;
  }
  /// The latest rate; none before the first second is over.
  std::optional<double> per_second() const { return rate_; }

 private:
  static constexpr double kShortest = 1;
  std::optional<double> since_, rate_;
  double seconds_ = 0, counted_ = 0;  // since the latest rate; the time before since_
};

}  // namespace sweep
