//===- Toy.h - a program of two blocks without a compiler -------*- C++ -*-===//
//
// loss = sum(w1 * (w0 * x)), 128 elements each, trained by plain SGD: the program
// table is written by hand for dp 1 and 2, pp 1 and 2 and ZeRO 1 and 3; segments
// and the update kernel are functions of the test. K = 4, V = 2, local order.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_RUNTIME_CORE_TOY_H
#define DSOPT_TEST_RUNTIME_CORE_TOY_H

#include "dsopt/Runtime/Session.h"

#include <string>

namespace dsopt::runtime::test {

constexpr int64_t kToyElements = 128;

/// Parameters lie in `folder`/toy.bin, which is written.
Program toyProgram(int64_t dp, int64_t pp, int64_t zero, const std::string &folder);

/// Lets updates go by norms of whole parameters. At stage 3, or with one rank.
void updateByNorms(Program &program);

void *toySymbol(const std::string &name);

/// What goes wrong in a segment, if anything. Set before ranks fork.
struct ToyTrouble {
  int64_t step = -1;
  int64_t infGradient = -1; ///< this element of w0's
  bool nanLoss = false, kill = false, noLabels = false;
};
extern ToyTrouble toyTrouble;

class ToyInputs : public InputSource {
public:
  void fill(int64_t step, int64_t microBatch, int64_t input, void *target) override;
  static float value(int64_t step, int64_t microBatch, int64_t i);
};

/// A new folder below the temporary one, removed with the object.
class Folder {
public:
  Folder();
  ~Folder();
  std::string path;
};

} // namespace dsopt::runtime::test

#endif // DSOPT_TEST_RUNTIME_CORE_TOY_H
