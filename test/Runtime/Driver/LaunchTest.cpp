//===- LaunchTest.cpp - launchers by their environment variables ----------===//

#include "dsopt/Runtime/Launch.h"
#include "dsopt/Runtime/World.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace dsopt::runtime;

namespace {
class Launchers : public testing::Test {
protected:
  void SetUp() override {
    for (const char *name : {"OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_RANK",
                             "PMIX_RANK",
                             "RANK",
                             "WORLD_SIZE",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "LOCAL_RANK",
                             "LOCAL_WORLD_SIZE",
                             "TORCHELASTIC_USE_AGENT_STORE",
                             "SLURM_PROCID",
                             "SLURM_STEP_NUM_TASKS",
                             "SLURM_STEP_NODELIST",
                             "SLURM_STEP_NUM_NODES",
                             "SLURM_STEP_TASKS_PER_NODE",
                             "SLURM_LOCALID",
                             "SLURM_NODEID",
                             "SLURM_JOB_ID",
                             "SLURM_STEP_ID",
                             "SLURM_NTASKS"})
      unsetenv(name);
  }
  void set(std::initializer_list<std::pair<const char *, const char *>> variables) {
    for (auto [name, value] : variables)
      setenv(name, value, 1);
  }
  void torch() {
    set({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}});
  }
  void slurm() {
    set({{"SLURM_PROCID", "5"},
         {"SLURM_STEP_NUM_TASKS", "7"},
         {"SLURM_STEP_NUM_NODES", "4"},
         {"SLURM_STEP_NODELIST", "node[07-09,12]"},
         {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
         {"SLURM_LOCALID", "1"},
         {"SLURM_NODEID", "2"},
         {"SLURM_JOB_ID", "4711"},
         {"SLURM_STEP_ID", "0"}});
  }
  std::string refused(const std::string &given) {
    try {
      findLaunch(given);
    } catch (const LaunchError &error) {
      EXPECT_EQ(error.status, StatusInput);
      return error.what();
    }
    return "";
  }
};

TEST_F(Launchers, NoneIsLocal) {
  EXPECT_EQ(findLaunch("").launcher, Launcher::Local);
  // What an salloc shell has, and half of others.
  set({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"RANK", "0"}});
  EXPECT_EQ(findLaunch("").launcher, Launcher::Local);
  EXPECT_EQ(launchedRank(), -1);
  torch();
  slurm();
  EXPECT_EQ(findLaunch("none").launcher, Launcher::Local);
}

TEST_F(Launchers, Torchrun) {
  torch();
  set({{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  Launch launch = findLaunch("");
  EXPECT_EQ(launch.launcher, Launcher::Environment);
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.size, 8);
  EXPECT_EQ(launch.localRank, 1);
  EXPECT_EQ(launch.localSize, 4);
  EXPECT_EQ(launch.address, "node1");
  EXPECT_EQ(launch.port, 29500);
  EXPECT_TRUE(launch.portTaken);
  EXPECT_EQ(launchedRank(), 5);
}

TEST_F(Launchers, Slurm) {
  slurm();
  Launch launch = findLaunch("");
  EXPECT_EQ(launch.launcher, Launcher::Slurm);
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.size, 7);
  EXPECT_EQ(launch.localRank, 1);
  EXPECT_EQ(launch.localSize, 2);
  EXPECT_EQ(launch.address, "node07");
  EXPECT_GT(launch.port, 1024);
  EXPECT_LT(launch.port + Meeting::kPorts, 32768);
  EXPECT_EQ(launchedRank(), 5);
  set({{"SLURM_NODEID", "3"}});
  EXPECT_EQ(findLaunch("").localSize, 1);
  int port = launch.port;
  set({{"SLURM_STEP_ID", "1"}});
  EXPECT_GE(std::abs(findLaunch("").port - port), Meeting::kPorts);
}

TEST_F(Launchers, TheFirstThatIsThere) {
  torch();
  slurm();
  EXPECT_EQ(findLaunch("").launcher, Launcher::Environment);
  EXPECT_EQ(findLaunch("slurm").launcher, Launcher::Slurm);
  set({{"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_RANK", "2"}});
  EXPECT_EQ(findLaunch("").launcher, Launcher::Mpi);
  EXPECT_EQ(findLaunch("").rank, 2);
  EXPECT_EQ(findLaunch("env").rank, 5);
}

TEST_F(Launchers, WrongVariablesAreRefused) {
  EXPECT_NE(refused("env").find("RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT"), std::string::npos);
  EXPECT_NE(refused("slurm").find("SLURM_PROCID"), std::string::npos);
  torch();
  set({{"RANK", "8"}});
  EXPECT_NE(refused("").find("expected 0 to 7"), std::string::npos);
  set({{"RANK", "-1"}});
  EXPECT_NE(refused("").find("RANK=-1"), std::string::npos);
  set({{"RANK", "1"}, {"MASTER_PORT", "70000"}});
  EXPECT_NE(refused("").find("70000"), std::string::npos);
  unsetenv("MASTER_ADDR");
  EXPECT_NE(refused("").find("MASTER_ADDR"), std::string::npos);
}

TEST(SlurmHosts, TheFirst) {
  EXPECT_EQ(firstHost("node"), "node");
  EXPECT_EQ(firstHost("a,b,c"), "a");
  EXPECT_EQ(firstHost("node[01-04,7]"), "node01");
  EXPECT_EQ(firstHost("node[7,01-04],login"), "node7");
  EXPECT_EQ(firstHost("rack[1-2]n[08-12]x,other"), "rack1n08x");
  EXPECT_EQ(firstHost("my-host-1,my-host-2"), "my-host-1");
  for (const char *wrong : {"", "node[1", "node]1", "node[[1]]", ","})
    EXPECT_THROW(firstHost(wrong), LaunchError) << wrong;
}
} // namespace
