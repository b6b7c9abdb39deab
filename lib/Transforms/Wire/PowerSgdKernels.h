//===- PowerSgdKernels.h - kernels of gradients as two factors --*- C++ -*-===//
//
// Factors lie column by column: each column is a row of a kernel.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_WIRE_POWERSGDKERNELS_H
#define DSOPT_LIB_TRANSFORMS_WIRE_POWERSGDKERNELS_H

#include <cstdint>
#include <string>

namespace dsopt {

struct FactorKernel {
  std::string name, text;
};

/// Values of a row of the kernels that add what ranks have sent.
inline constexpr int64_t kSummedValues = 16;
/// (x, y) -> x + y; (x) -> what is to be added.
extern const char *const kFactorSum, *const kFactorPart;

/// A row of values as it is.
FactorKernel factorCopy(int64_t values);
/// (q) -> q := where a column is all 0, numbers from -0.5 to 0.5 that follow from their places.
FactorKernel factorBegin(int64_t columns);
/// (rows of M, Q) -> rows of M Q.
FactorKernel factorLeft(int64_t rank, int64_t columns);
/// (M, P) -> M^T P, over the columns of M.
FactorKernel factorRight(int64_t rank, int64_t rows, int64_t columns);
/// (rows) -> their lengths, f64.
FactorKernel factorSize(int64_t rows);
/// (p, its length at first) -> p := p / |p|; 0 where next to nothing is left of it, and its direction would
/// be that of rounding. What is not finite stays so.
FactorKernel factorUnit(int64_t rows);
/// (p, others) -> others := others - p (p . other): what is orthogonal to p, of length 1.
FactorKernel factorApart(int64_t rows);
/// (rows of P, Q) -> rows of P Q^T / ranks.
FactorKernel factorProduct(int64_t rank, int64_t columns, int64_t ranks);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_WIRE_POWERSGDKERNELS_H
