//===- RunFixture.h - dsopt-run with programs written by hand ---*- C++ -*-===//

#ifndef DSOPT_TEST_RUNTIME_DRIVER_RUNFIXTURE_H
#define DSOPT_TEST_RUNTIME_DRIVER_RUNFIXTURE_H

#include "NpzWriter.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dsopt::test {

inline std::string readFile(const std::string &path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class Run : public ::testing::Test {
protected:
  std::string folder = ::testing::TempDir() + "run-test-" + std::to_string(getpid());
  std::string output;

  void SetUp() override {
    mkdir(folder.c_str(), 0777);
    std::ofstream(folder + "/tiny.bin", std::ios::binary) << std::string(256, '\0');
    data({1, 2, 3, 4, 5, 6});
  }
  void TearDown() override { std::system(("rm -r " + folder).c_str()); }

  /// Micro-batches of x, each with equal values.
  void data(const std::vector<float> &values) {
    std::vector<float> x;
    for (float value : values)
      x.insert(x.end(), 64, value);
    std::string n = std::to_string(values.size());
    NpzWriter writer;
    writer.add("x", "<f4", "(" + n + ", 2, 32)", x);
    writer.add("labels", "<i4", "(" + n + ", 2)", std::vector<int32_t>(values.size() * 2));
    writer.write(folder + "/data.npz");
  }

  /// The exit status of a command in the folder; its output goes to `output`.
  int shell(const std::string &command) {
    int status = std::system(("cd " + folder + " && (" + command + ") > out.txt 2>&1").c_str());
    output = readFile(folder + "/out.txt");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int run(const std::string &program, const std::string &options) {
    return shell(DSOPT_RUN " " + program + " -data=data.npz -weights=. " + options);
  }
  /// What the segments of TinyProgram.c do.
  enum : int {
    Sleep = 1000,
    Kill,
    NoNumber,
    Leave,
    Interrupted,
    Stop,
    KillOnce,
    StopAWhile,
    CutData,
    CutLog,
    CutProgram,
    CutByte
  };
  /// `weights_hash` of the log's last line.
  std::string hash() {
    std::string lines = log();
    size_t at = lines.rfind("\"weights_hash\":\"");
    return at == std::string::npos ? "" : lines.substr(at + 16, 64);
  }
  /// The log's last line.
  std::string end() {
    std::string lines = log();
    return lines.empty() ? "" : lines.substr(lines.rfind('\n', lines.size() - 2) + 1);
  }
  /// ` MASTER_PORT=` and a port on which nobody listens, other tests that run at the same time included.
  static std::string freePort() {
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t bytes = sizeof address;
    bind(probe, reinterpret_cast<sockaddr *>(&address), bytes);
    getsockname(probe, reinterpret_cast<sockaddr *>(&address), &bytes);
    close(probe);
    return " MASTER_PORT=" + std::to_string(ntohs(address.sin_port));
  }
  /// Two ranks of TINY2 as a launcher starts them, on hosts of their own or one; their output goes to
  /// rank0.txt and rank1.txt, and `then` comes after them.
  int launched(const std::string &options, const std::string &then, bool apart = false,
               const std::string &before = "") {
    std::string text = before + "export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1" + freePort();
    for (std::string rank : {"0", "1"})
      text += "; " + (apart ? "DSOPT_HOST=host" + rank + " " : "") + "RANK=" + rank +
              " " DSOPT_RUN " " TINY2 " -data=data.npz -weights=. " + options + " > rank" + rank +
              ".txt 2>&1 & p" + rank + "=$!";
    return shell(text + "; " + then);
  }
  /// Waits in a shell until the log has a line of step 0.
  static constexpr const char *kUntilTraining =
      "for i in $(seq 600); do grep -qs '\"step\":0' log.jsonl && break; sleep 0.05; done; ";
  bool says(const std::string &text) { return output.find(text) != std::string::npos; }
  std::string log() { return readFile(folder + "/log.jsonl"); }
};

} // namespace dsopt::test

#endif // DSOPT_TEST_RUNTIME_DRIVER_RUNFIXTURE_H
