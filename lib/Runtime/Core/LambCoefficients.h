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
#include "Kernels/LambRule.h"
#include "dsopt/Runtime/Coefficients.h"
#include "dsopt/Runtime/Engine.h"
#include "dsopt/Runtime/Session.h"

#include <map>

namespace dsopt::runtime {

/// The buffer of a bucket that has DSOPT_COEFFICIENTS of each of its parameters, and of saved tensors.
inline constexpr const char *kCoefficients = "coefficients";

/// Where a bucket's parts of parameters have theirs in it: their number, by first element.
std::map<int64_t, int64_t> coefficientPlaces(const Program &program, int64_t bucket);
/// Those of a part. All parts of a parameter have the same.
float *coefficientsOf(const Program &program, const Addresses &addresses, const Part &part);

/// Once, in front of the first step behind the freeze: by how much each parameter's momentum is multiplied
/// while it travels. That is what makes the root of its mean square the mean of all of the model's, 1 where a
/// momentum is 0 throughout. Where checkpoints have it (`isFirst` false), parts of a parameter get it of the
/// first one. Collective.
void beginFactors(const Program &program, const RankInfo &info, const Addresses &addresses, Engine &engine,
                  ThreadPool &pool, bool isFirst);

/// Where the largest factor lies in a parameter's record behind the freeze, its bits as a float: above the
/// highest digit of the first sum, which has 32 bits.
inline constexpr int kFactorWord = ExactSum::kDigits - 1, kFactorShift = 32;

class LambCoefficients {
public:
  LambCoefficients(const Program &program, const Addresses &addresses, const RunOptions &options,
                   ThreadPool &pool, bool isFrozen);

  /// What a direction goes by.
  struct Operands {
    const float *along, *momentum, *variance, *fresh;
  };
  /// What a record has of a part of a parameter behind the freeze.
  struct Measured {
    ExactSum own, along; ///< squares of the quotient of the moments, and of that with decay, if there is any
    float factor = 0;    ///< the largest by which the root of the variance has changed
  };

  /// Prepares the next direction; `first` is its first element in the bucket.
  void addDirection(const Action &action, int64_t first);
  const Operands &operands(size_t direction) const { return directions[direction].operands; }
  /// Measures what direction number `direction` has made behind the freeze.
  void measure(size_t direction);
  Measured of(size_t direction, int64_t parameter) const;

  /// The ratio that this step goes by, of a part with these numbers, which change where the step applies.
  /// `lengths` are the norms of what the record has, `factor` the largest.
  float ratio(float *numbers, const float *table, const double *lengths, float factor) const;

  const LambRule rule;
  const float eps;
  const bool decays; ///< some parameter's weights

private:
  struct Piece {
    int64_t parameter, begin, elements; ///< from the direction's first element
    Measured measured;
  };
  struct Direction {
    Operands operands;
    std::vector<Piece> pieces;
  };

  const Program &program;
  const Addresses &addresses;
  ThreadPool &pool;
  std::vector<Direction> directions;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_LAMBCOEFFICIENTS_H
