//===- LambCoefficients.h - what 1-bit LAMB keeps by parameter --*- C++ -*-===//
//
// 1-bit LAMB (Li et al., 2021) as DeepSpeed has it. Before the freeze a mean of each
// parameter's ratio of norms is taken. Behind it that mean, by a factor of how much the
// variance has changed since, is the ratio: of whole parameters, which all ranks have.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_LAMBCOEFFICIENTS_H
#define DSOPT_LIB_RUNTIME_CORE_LAMBCOEFFICIENTS_H

#include "Core/Addresses.h"
#include "Core/ThreadPool.h"
#include "Kernels/CPU/ExactSum.h"
#include "dsopt/Runtime/Coefficients.h"
#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Scalars.h"
#include "dsopt/Runtime/Session.h"

#include <map>
#include <mutex>

namespace dsopt::runtime {

/// The buffer of a bucket that has DSOPT_COEFFICIENTS of each of its parameters, and of saved tensors.
inline constexpr const char *kCoefficients = "coefficients";

/// Where a bucket's parts of parameters have theirs in it: their number, by first element.
std::map<int64_t, int64_t> coefficientPlaces(const Program &program, int64_t bucket);

/// Once, in front of the first step behind the freeze: by how much each parameter's momentum is multiplied
/// while it travels. That is what makes the root of its mean square the mean of all of the model's, 1 where a
/// momentum is 0 throughout. Where checkpoints have it (`isFirst` false), parts of a parameter get it of the
/// first one. Collective.
void beginFactors(const Program &program, const RankInfo &info, const Addresses &addresses, Engine &engine,
                  ThreadPool &pool, bool isFirst);

class LambCoefficients {
public:
  /// `isFrozen`: of steps behind the freeze.
  LambCoefficients(const Program &program, const Addresses &addresses, const RunOptions &options,
                   ThreadPool &pool, bool isFrozen)
      : program(program), addresses(addresses), options(options), pool(pool), isFrozen(isFrozen) {}

  /// Prepares the next direction; `first` is its first element in the bucket.
  void addDirection(const Action &action, int64_t first);
  /// Direction number `direction` has been made. Whether all that steps need of it is measured: the norms of
  /// it and of the parameter are needed otherwise.
  bool measure(size_t direction);
  /// The ratio that this step goes by. Before the freeze that of the norms is given, behind it nothing
  /// is needed. What is kept changes once a step, where the step applies; threads may ask.
  float ratio(int64_t parameter, const float *table, double ofNorms);

private:
  struct Piece {
    int64_t parameter, begin, elements; ///< from the direction's first element
    ExactSum own, along;                ///< squares of the quotient of the moments, and of that with decay
    float factor;                       ///< the largest
  };
  struct Direction {
    const float *along, *momentum, *variance, *fresh;
    std::vector<Piece> pieces;
  };
  struct Kept {
    float *numbers = nullptr;                        ///< DSOPT_COEFFICIENTS
    std::vector<std::pair<size_t, size_t>> pieces{}; ///< directions and their pieces
    bool isDone = false;                             ///< in this step
    float ratio = 1;
  };
  /// What the variances have changed by, with the share that weight decay leaves it.
  double factorOf(const Kept &kept, bool decays) const;

  const Program &program;
  const Addresses &addresses;
  const RunOptions &options;
  ThreadPool &pool;
  bool isFrozen;
  std::vector<Direction> directions;
  std::map<int64_t, Kept> kept; ///< by parameter
  std::mutex mutex;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_LAMBCOEFFICIENTS_H
