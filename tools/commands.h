// The table of commands. A new one is a file in tools/commands, and here a declaration and a row.
#pragma once

#include <vector>

#include "tools/command_line.h"

namespace sweep {

class MpiSession;

/// `session`: the processes that train together with this one; nullptr: there are none.
Command run_command(MpiSession* session = nullptr);     ///< Trains the runs of a sweep file.
Command resume_command(MpiSession* session = nullptr);  ///< Resumes the sweep in a directory.
Command plan_command();                                 ///< Prints the runs of a sweep file.
Command lr_find_command();       ///< Finds learning rates that a run can be trained with.
Command show_command();          ///< Prints the results of a sweep or a run.
Command status_command();        ///< Prints how far a sweep is, or the sweeps of a log directory.
Command cancel_command();        ///< Ends the tasks of a sweep on a cluster.
Command compare_command();       ///< Compares runs that differ in one setting.
Command report_command();        ///< Writes a sweep as one HTML page.
Command fsck_command();          ///< Checks files for damage.
Command verify_command();        ///< Trains finished runs again and compares the bits.
Command predict_command();       ///< Predicts with the network of a run.
Command evaluate_command();      ///< Evaluates the network of a run.
Command export_model_command();  ///< Writes the network of a run for other programs.
Command export_command();        ///< Writes scalars and hyperparameters of a log directory.
Command import_command();        ///< Adopts what other programs have logged.
Command data_command();          ///< Gets data sets and describes them.
Command devices_command();       ///< Prints the devices of this machine.
Command schema_command();        ///< Prints the JSON schema of sweep files.
Command init_command();          ///< Writes a sweep file to start from.
Command completion_command();    ///< Prints a completion script.
Command complete_command();      ///< Answers completion scripts.

/// In the order of `sweep --help`.
inline std::vector<Command> all_commands(MpiSession* session = nullptr) {
  return {run_command(session), resume_command(session), plan_command(),   lr_find_command(),
          show_command(),       status_command(),        cancel_command(), compare_command(),
          report_command(),     fsck_command(),          verify_command(), predict_command(),
          evaluate_command(),   export_model_command(),  export_command(), import_command(),
          data_command(),       devices_command(),       schema_command(), init_command(),
          completion_command(), complete_command()};
}

}  // namespace sweep
