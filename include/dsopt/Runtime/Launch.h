//===- Launch.h - who started this process ----------------------*- C++ -*-===//
//
// Launchers make themselves known by environment variables (CONTRACT section 1,
// Launchers). Read by the compiler, which compiles once a host under -run, and by
// trained programs.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_LAUNCH_H
#define DSOPT_RUNTIME_LAUNCH_H

#include <string>

namespace dsopt::runtime {

enum class Launcher {
  Local,       ///< nobody: ranks are started here
  Mpi,         ///< mpirun, or srun with PMIx
  Environment, ///< RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
  Slurm        ///< srun
};

/// What a launcher says of this process; -1 and 0 where it does not.
struct Launch {
  Launcher launcher = Launcher::Local;
  int rank = -1, size = 0;
  int localRank = -1, localSize = 0; ///< among the ranks of this host
  std::string address;               ///< Environment, Slurm: of rank 0
  int port = 0;
  bool portTaken = false; ///< torchrun itself listens at the port
  std::string job;        ///< letters, digits, dashes: names the run on this host
};

/// `given` is the value of -launcher, empty without it. Throws LaunchError.
Launch findLaunch(const std::string &given);

/// The rank by whichever launcher's variables are there, -1 without: for messages before options are read.
int launchedRank();

/// The first host of Slurm's list: "node07" of "node[07-09,12],login". Throws LaunchError.
std::string firstHost(const std::string &list);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_LAUNCH_H
