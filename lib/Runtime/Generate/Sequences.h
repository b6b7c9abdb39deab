//===- Sequences.h - sequences on their way ---------------------*- C++ -*-===//
//
// Each has the tokens that it begins with and those that were chosen behind them. One that is on its way has
// a slot of the program's caches. A run takes the last token of each that is being answered, and what there
// is room for of prompts, in pieces.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_GENERATE_SEQUENCES_H
#define DSOPT_LIB_RUNTIME_GENERATE_SEQUENCES_H

#include <cstdint>
#include <vector>

namespace dsopt::runtime {

/// What one run is given: a row each of tokens, positions and slots (-1: none), and the rows whose logits are
/// wanted, with the sequences that they are of.
struct Rows {
  std::vector<int64_t> tokens, positions, slots, picks, sequences;
};

struct Sequence {
  int64_t prompt = 0;          ///< which prompt it answers
  int64_t answer = 0;          ///< counted over all prompts
  std::vector<int64_t> tokens; ///< the prompt's, then those chosen
  int64_t given = 0;           ///< of them, those of the prompt
  int64_t seen = 0;            ///< of them, those that went through the program
  int64_t slot = -1;           ///< -1: it waits, or is done
  bool done = false;

  int64_t chosen() const { return static_cast<int64_t>(tokens.size()) - given; }
};

class Sequences {
public:
  /// `slots` are on their way at a time.
  Sequences(std::vector<Sequence> sequences, int64_t slots);

  /// The next run's rows, at most so many; none: all sequences are done. They count as seen.
  void next(int64_t most, Rows &rows);
  Sequence &operator[](int64_t number) { return all[number]; }
  int64_t size() const { return static_cast<int64_t>(all.size()); }
  /// It needs its slot no more.
  void finish(Sequence &sequence);

private:
  void take(int64_t number, int64_t count, Rows &rows);

  std::vector<Sequence> all;
  std::vector<int64_t> inSlot; ///< the sequence of each slot, -1: none
  int64_t waiting = 0;         ///< the first one that has had no slot yet
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_GENERATE_SEQUENCES_H
