// The lines of log.txt.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "runmanager/records/results.h"
#include "runmanager/training/log_file.h"
#include "runmanager/training/prepared_run.h"

namespace sweep {

/// "run lr=0.1 on cpu: 60000 training samples in 600 batches, 44426 parameters".
std::string begin_text(const PreparedRun& run, std::size_t batches);

/// "epoch 2: loss 0.5, accuracy 0.85, validation loss 0.6, accuracy 0.8, 1.2 s, 50k images/s".
std::string epoch_text(const EpochRecord& epoch);

/// "the checkpoint was trained with other kernels than there are now, …". Both as Engine::kernels() has them.
std::string other_kernels_text(const std::string& now, const std::string& before);

/// What the metrics of a run say of its test set, "test: loss 0.5, accuracy 0.85", and how it has ended.
void log_end(LogFile& log, const std::map<std::string, double>& metrics, RunStatus status,
             const std::string& reason);

}  // namespace sweep
