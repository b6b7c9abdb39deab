//===- Rounds.h - small records in few messages -----------------*- C++ -*-===//
//
// An exchange or an agreement of N ranks as about log2 N messages of each rank.
// Exchanges: in round k a rank hands all records that it has to the member 2^k
// before it. Agreements: records are merged with those of the member whose place
// differs in bit k; where N is no power of two the members beyond the last one
// hand their record over first and get the result in the end. What is merged is
// exact, so all get the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_COMM_ROUNDS_H
#define DSOPT_LIB_RUNTIME_COMM_ROUNDS_H

#include "dsopt/Runtime/Engine.h"

namespace dsopt::runtime {

class Rounds {
public:
  /// Ranks of the messages, -1: none. Each peer is sent to once at most, and received from once.
  struct Round {
    int to = -1, from = -1;
    int64_t sends = 0, receives = 0; ///< bytes
  };

  /// This rank's record lies in its place of `all`.
  void startExchange(const Communicator &group, int64_t bytes, char *all);
  /// `record` becomes the merged one.
  void startAgreement(const Communicator &group, int64_t *record, const RecordShape &shape);

  /// All ranks that this rank's exchanges and agreements in `group` are with.
  static std::vector<int> peersOf(const Communicator &group);

  int count() const { return static_cast<int>(steps.size()); }
  const Round &round(int index) const { return steps[index].round; }
  /// What a round sends, which stays as it is; all rounds before it have been taken.
  const char *outgoing(int index);
  /// Where what a round receives belongs, at any time.
  char *incoming(int index) { return scratch.data() + steps[index].in; }
  /// What the round receives is there.
  void take(int index);

private:
  struct Step {
    Round round;
    int first = 0, records = 0, taken = 0; ///< exchange: places of what is sent, and how many come
    bool merges = true;
    size_t out = 0, in = 0; ///< in the scratch memory
  };
  void add(Step step);

  const Communicator *group = nullptr;
  bool agrees = false;
  int64_t bytes = 0;
  char *target = nullptr;
  RecordShape shape;
  std::vector<Step> steps;
  std::vector<char> scratch;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_ROUNDS_H
