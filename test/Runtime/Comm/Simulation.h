//===- Simulation.h - many ranks' wires in one process ----------*- C++ -*-===//
//
// A seeded scheduler moves bytes between wires in pieces of any size, in any order
// between links, and does to them what networks and machines do: links that are slow
// or cut, ranks that die or fail, bits that flip.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_RUNTIME_COMM_SIMULATION_H
#define DSOPT_TEST_RUNTIME_COMM_SIMULATION_H

#include "Comm/Wire.h"

#include <map>
#include <random>
#include <set>

namespace dsopt::runtime::test {

class Simulation {
public:
  enum Fault { None, Delay, Death, SelfFailure, CutLink, CutHost, Flip, Faults };
  static const char *nameOf(Fault fault);
  /// The first operation is an agreement of so many words: digits of a norm, flags and 64 losses.
  static constexpr int64_t kFirstWords = 20 + 5 + 64;

  /// `sparse`: only ranks that exchange or agree with each other are connected, and nothing else is done.
  Simulation(int ranks, uint64_t seed, Fault fault, bool sparse = false, int operations = 12);
  ~Simulation();

  /// Runs to the end. An empty text, or what did not hold.
  std::string run();

  /// Of one rank: frames of its operations, and bytes of all that it sent.
  int64_t framesSent(int rank) const;
  int64_t bytesSent(int rank) const;
  /// Ranks that were told of a failure.
  int failures() const { return failed; }

private:
  struct Rank;
  struct Pipe;
  struct Work;

  int64_t pick(int64_t count) { return static_cast<int64_t>(random() % static_cast<uint64_t>(count)); }
  Pipe &pipe(int from, int to);
  void start(Rank &rank, int queue);
  void finished(Rank &rank, int slot);
  void look(Rank &rank);
  void decide(Rank &rank);
  void activate(std::vector<int> &list, Pipe &entry, bool Pipe::*flag);
  bool moveOut();
  bool moveIn();
  void leave(Rank &rank);
  void strike();
  void advanceClock(std::chrono::milliseconds time);
  void wrong(const std::string &text);

  int size;
  Fault fault;
  std::mt19937_64 random;
  Wire::Time now{};
  std::vector<std::unique_ptr<Rank>> ranks;
  std::vector<std::unique_ptr<Pipe>> pipes; ///< from * size + to
  std::vector<int> outs, ins;               ///< pipes that may have something to take or to bring
  int64_t events = 0, strikeAt = 0;
  int victim = 0, other = 0, failed = 0, left = 0;
  int said = 0, saidByVictim = 0; ///< messages of the failure
  bool struck = false;
  std::string problem;
};

} // namespace dsopt::runtime::test

#endif // DSOPT_TEST_RUNTIME_COMM_SIMULATION_H
