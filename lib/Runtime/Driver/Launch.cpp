//===- Launch.cpp - who started this process ------------------------------===//

#include "dsopt/Runtime/Launch.h"
#include "dsopt/Runtime/World.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdlib>

namespace dsopt::runtime {

static std::string textOf(const char *name) {
  const char *text = std::getenv(name);
  return text ? text : "";
}

/// A variable's number, `otherwise` if it is not set.
static int numberOf(const char *name, int otherwise) {
  std::string text = textOf(name);
  if (text.empty())
    return otherwise;
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw LaunchError(StatusInput, std::string("environment variable ") + name + "=" + text +
                                       ": expected a number of 0 or more");
  return value;
}

/// What can be part of a file's name.
static std::string nameOf(std::string text) {
  for (char &c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)))
      c = '-';
  return text;
}

static bool isMpi() { return std::getenv("OMPI_COMM_WORLD_SIZE") || std::getenv("PMIX_RANK"); }
static const char *const kTorch[] = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};
static std::string missingTorch() {
  std::string missing;
  for (const char *name : kTorch)
    if (textOf(name).empty())
      missing += (missing.empty() ? "" : ", ") + std::string(name);
  return missing;
}

static Launch underMpi() {
  Launch launch;
  launch.launcher = Launcher::Mpi;
  launch.size = numberOf("OMPI_COMM_WORLD_SIZE", numberOf("SLURM_STEP_NUM_TASKS", 0));
  launch.rank = numberOf("OMPI_COMM_WORLD_RANK", numberOf("PMIX_RANK", -1));
  launch.localRank = numberOf("OMPI_COMM_WORLD_LOCAL_RANK", numberOf("SLURM_LOCALID", -1));
  launch.localSize = numberOf("OMPI_COMM_WORLD_LOCAL_SIZE", 0);
  launch.job = nameOf("mpi-" + textOf("PMIX_NAMESPACE"));
  return launch;
}

static void check(const Launch &launch, const char *rank, const char *size) {
  if (launch.size < 1)
    throw LaunchError(StatusInput, std::string(size) + "=" + textOf(size) + ": expected 1 or more ranks");
  if (launch.rank >= launch.size)
    throw LaunchError(StatusInput, std::string(rank) + "=" + std::to_string(launch.rank) +
                                       ": expected 0 to " + std::to_string(launch.size - 1) + ", since " +
                                       size + "=" + std::to_string(launch.size));
  if (launch.port < 1 || launch.port > 65535)
    throw LaunchError(StatusInput, "MASTER_PORT=" + std::to_string(launch.port) + ": expected 1 to 65535");
}

static Launch underTorch() {
  if (std::string missing = missingTorch(); !missing.empty())
    throw LaunchError(StatusInput, "-launcher=env needs the environment variables RANK, WORLD_SIZE, "
                                   "MASTER_ADDR and MASTER_PORT; not set: " +
                                       missing);
  Launch launch;
  launch.launcher = Launcher::Environment;
  launch.rank = numberOf("RANK", 0);
  launch.size = numberOf("WORLD_SIZE", 0);
  launch.localRank = numberOf("LOCAL_RANK", -1);
  launch.localSize = numberOf("LOCAL_WORLD_SIZE", 0);
  // Ranks of one host need no address that others can reach.
  bool oneHost = launch.size > 0 && launch.localSize == launch.size;
  launch.address = oneHost ? "127.0.0.1" : textOf("MASTER_ADDR");
  launch.port = numberOf("MASTER_PORT", 0);
  launch.portTaken = textOf("TORCHELASTIC_USE_AGENT_STORE") == "True";
  launch.job = nameOf("env-" + textOf("MASTER_PORT") + "-" + textOf("TORCHELASTIC_RUN_ID") + "-" +
                      textOf("TORCHELASTIC_RESTART_COUNT"));
  check(launch, "RANK", "WORLD_SIZE");
  return launch;
}

std::string firstHost(const std::string &list) {
  std::string host;
  bool inside = false, taken = false;
  auto wrong = [&] {
    throw LaunchError(StatusInput,
                      "SLURM_STEP_NODELIST=" + list + ": expected a list as node[01-04,7],other");
  };
  for (char c : list) {
    if (c == '[' || c == ']') {
      if (inside == (c == '['))
        wrong();
      inside = c == '[';
      taken = false;
    } else if (c == ',' && !inside) {
      break;
    } else if (inside && (c == '-' || c == ',')) {
      taken = true; // the first number of the brackets is there
    } else if (!taken) {
      host += c;
    }
  }
  if (inside || host.empty())
    wrong();
  return host;
}

/// How many tasks Slurm started on node `node`: "2(x3),1" are 2, 2, 2, 1.
static int tasksOnNode(const std::string &list, int node) {
  for (size_t at = 0; at < list.size();) {
    size_t end = std::min(list.find(',', at), list.size());
    std::string part = list.substr(at, end - at);
    size_t times = part.find("(x");
    node -= times == std::string::npos ? 1 : std::atoi(part.c_str() + times + 2);
    if (node < 0)
      return std::atoi(part.c_str());
    at = end + 1;
  }
  return 0;
}

static Launch underSlurm() {
  for (const char *name : {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"})
    if (textOf(name).empty())
      throw LaunchError(StatusInput, std::string("-launcher=slurm needs what srun sets for its tasks; ") +
                                         name + " is not set: start it with srun");
  Launch launch;
  launch.launcher = Launcher::Slurm;
  launch.rank = numberOf("SLURM_PROCID", 0);
  launch.size = numberOf("SLURM_STEP_NUM_TASKS", 0);
  launch.localRank = numberOf("SLURM_LOCALID", -1);
  launch.localSize = tasksOnNode(textOf("SLURM_STEP_TASKS_PER_NODE"), numberOf("SLURM_NODEID", 0));
  // Task 0 is on the first node of the step.
  launch.address = textOf("MASTER_ADDR");
  if (launch.address.empty())
    launch.address =
        numberOf("SLURM_STEP_NUM_NODES", 0) == 1 ? "127.0.0.1" : firstHost(textOf("SLURM_STEP_NODELIST"));
  // Steps have ports of their own, below those that the system gives away.
  uint64_t job = numberOf("SLURM_JOB_ID", 0), step = numberOf("SLURM_STEP_ID", 0);
  launch.port = numberOf("MASTER_PORT", static_cast<int>(20000 + (job * 64 + step) % 625 * Meeting::kPorts));
  launch.job = nameOf("slurm-" + std::to_string(job) + "-" + std::to_string(step));
  check(launch, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  return launch;
}

Launch findLaunch(const std::string &given) {
  if (given == "none")
    return {};
  if (given == "mpi" || (given.empty() && isMpi()))
    return underMpi();
  if (given == "env" || (given.empty() && missingTorch().empty()))
    return underTorch();
  if (given == "slurm" || (!textOf("SLURM_PROCID").empty() && numberOf("SLURM_STEP_NUM_TASKS", 0) > 1))
    return underSlurm();
  // Each of these processes would start all ranks.
  if (!textOf("RANK").empty() && std::atoi(textOf("WORLD_SIZE").c_str()) > 1)
    throw LaunchError(StatusInput, "RANK and WORLD_SIZE=" + textOf("WORLD_SIZE") +
                                       " are set, as a launcher does, but not " + missingTorch() +
                                       "; -launcher=none starts the ranks here");
  return {};
}

int launchedRank() {
  const char *name = isMpi() ? std::getenv("OMPI_COMM_WORLD_RANK") ? "OMPI_COMM_WORLD_RANK" : "PMIX_RANK"
                     : missingTorch().empty()                                ? "RANK"
                     : std::atoi(textOf("SLURM_STEP_NUM_TASKS").c_str()) > 1 ? "SLURM_PROCID"
                                                                             : "";
  std::string text = *name ? textOf(name) : "";
  return text.empty() ? -1 : std::atoi(text.c_str());
}

} // namespace dsopt::runtime
