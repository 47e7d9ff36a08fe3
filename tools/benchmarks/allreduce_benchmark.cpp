// MPI_Allreduce alone: `mpirun -n 2 allreduce_benchmark BYTES` prints how many seconds a call with so many
// bytes of floats takes, the least mean of many rounds.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  constexpr int kRounds = 50, kCalls = 40;
  const long bytes = argc > 1 ? std::atol(argv[1]) : 0;
  if (bytes < static_cast<long>(sizeof(float))) {
    std::fprintf(stderr,
                 "allreduce_benchmark: usage: mpirun -n RANKS allreduce_benchmark BYTES, at least 4\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::vector<float> terms(static_cast<std::size_t>(bytes) / sizeof(float), 1.0F);
  std::vector<float> sums(terms.size());
  double least = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int call = 0; call < kCalls; ++call)
      MPI_Allreduce(terms.data(), sums.data(), static_cast<int>(terms.size()), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
    least = std::min(least, (MPI_Wtime() - begin) / kCalls);
  }
  if (rank == 0) std::printf("%.9f\n", least);
  MPI_Finalize();
  return 0;
}
