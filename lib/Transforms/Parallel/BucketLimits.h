//===- BucketLimits.h - elements of a bucket's collectives ------*- C++ -*-===//
//
// What -reduce-bucket-size and -gather-bucket-size say of a bucket, and what cannot be as
// they say: a parameter is not cut.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_PARALLEL_BUCKETLIMITS_H
#define DSOPT_LIB_TRANSFORMS_PARALLEL_BUCKETLIMITS_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Options.h"

namespace dsopt {

/// How many elements one collective moves at most.
class BucketLimits {
public:
  BucketLimits(mlir::ModuleOp module, int64_t ranks, int64_t zero) : zero(zero) {
    // What is alone sends nothing.
    if (ranks > 1) {
      reduced = options::reduce_bucket_size(module).value_or(INT64_MAX);
      gathered = options::gather_bucket_size(module).value_or(INT64_MAX);
    }
  }
  int64_t of(bool frozen) const {
    int64_t most = zero >= (frozen ? 3 : 1) ? gathered : INT64_MAX;
    return frozen ? most : std::min(most, reduced);
  }
  /// Remembers a parameter that is larger than its limit.
  void note(graph::ParameterOp parameter, int64_t elements) {
    if (elements <= of(parameter.getFrozen()))
      return;
    ++exceeding;
    if (elements > largest.second)
      largest = {parameter, elements};
  }
  /// What could not be obeyed.
  void warn() const {
    if (exceeding == 0)
      return;
    graph::ParameterOp parameter = largest.first;
    int64_t limit = of(parameter.getFrozen());
    parameter.emitWarning() << (limit == gathered ? "-gather-bucket-size=" : "-reduce-bucket-size=") << limit
                            << ", but " << exceeding
                            << (exceeding == 1 ? " parameter has" : " parameters have") << " more elements (@"
                            << parameter.getSymName() << " " << largest.second
                            << "): a parameter is not cut, each of them is a bucket of its own";
  }

private:
  int64_t zero, reduced = INT64_MAX, gathered = INT64_MAX;
  int64_t exceeding = 0;
  std::pair<graph::ParameterOp, int64_t> largest;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_PARALLEL_BUCKETLIMITS_H
