// A training loop that uses only RunManager of this project: a line through four points, by gradient descent.
#include <runmanager/run_builder.h>
#include <runmanager/run_manager.h>

#include <array>

int main() {
  constexpr std::array<double, 4> x = {0, 1, 2, 3}, y = {1, 3, 5, 7};
  sweep::RunManagerOptions options;
  options.directory = "runs/line";
  sweep::RunManager manager(options);
  for (const sweep::Run& run : sweep::RunBuilder::get_runs({{"lr", {0.1, 0.01}}})) {
    if (manager.keep_completed(run)) continue;
    manager.begin_run(run);
    double slope = 0, offset = 0;
    for (int epoch = 0; epoch < 50; ++epoch) {
      manager.begin_epoch();
      double loss = 0, slope_gradient = 0, offset_gradient = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double error = slope * x[i] + offset - y[i];
        loss += error * error / x.size();
        slope_gradient += 2 * error * x[i] / x.size();
        offset_gradient += 2 * error / x.size();
      }
      slope -= run.get<double>("lr") * slope_gradient;
      offset -= run.get<double>("lr") * offset_gradient;
      manager.track_loss(loss, static_cast<std::int64_t>(x.size()));
      manager.track_epoch_metric("slope", slope);
      manager.end_epoch();
    }
    manager.end_run();
    manager.save("results");
  }
}
