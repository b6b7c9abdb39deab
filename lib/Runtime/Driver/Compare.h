//===- Compare.h - a run beside the log of another --------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_COMPARE_H
#define DSOPT_LIB_RUNTIME_DRIVER_COMPARE_H

#include "dsopt/Runtime/Program.h"
#include "dsopt/Runtime/Session.h"

#include <map>
#include <string>
#include <vector>

namespace dsopt::runtime {

/// What -compare=RUN.jsonl says: in how many steps this run has the bits of that one, where they part and
/// how far apart they get. Losses and norms of a log have all digits of their floats.
class Comparison {
public:
  /// Reads the log; an Error of status 1 if there is none, or no step in it.
  explicit Comparison(const std::string &path);

  void step(const StepResult &result, const Program &program);
  void evaluation(int64_t step, float loss);

  /// A line for a person, and a JSON object.
  std::string text() const;
  std::string json() const;

private:
  struct Numbers {
    double loss = 0, gradNorm = 0;
    bool hasNorm = false;
    std::map<std::string, double> gradNorms, paramNorms; ///< of -log-norms
  };
  std::string path;
  std::map<int64_t, Numbers> steps;
  std::map<int64_t, double> evaluations;

  int64_t compared = 0, same = 0, unknown = 0, evaluated = 0, sameEvaluations = 0;
  int64_t first = -1;    ///< the first step that differs, -1: none
  std::string firstText; ///< what differs there
  double largest = 0;    ///< relative difference of losses
  int64_t largestStep = -1;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_COMPARE_H
