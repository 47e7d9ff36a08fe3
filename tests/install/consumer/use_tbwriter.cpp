// Scalars for TensorBoard from a program that has nothing else to do with sweep.
#include <tbwriter/summary_writer.h>

#include <cmath>

int main() {
  sweep::tbwriter::SummaryWriter writer("runs/decay");
  for (int step = 0; step < 100; ++step) writer.add_scalar("Loss/train", std::exp(-0.05 * step), step);
  writer.close();  // throws if anything could not be written
}
