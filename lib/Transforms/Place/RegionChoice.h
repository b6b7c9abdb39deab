//===- RegionChoice.h - which of several cuts pay together ------*- C++ -*-===//
//
// Regions that have an operation in common exclude each other; others may share a sum, which is paid once.
// The best of all subsets is found exactly: parts that have nothing to do with each other are solved apart,
// equal ones once. Knows numbers alone. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_PLACE_REGIONCHOICE_H
#define DSOPT_LIB_TRANSFORMS_PLACE_REGIONCHOICE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace dsopt {

/// What one cut saves and takes, in picoseconds.
struct CutGain {
  int64_t saved = 0, sums = 0;        ///< by itself
  llvm::SmallVector<unsigned> shared; ///< numbers of sums that others may pay with it
};

struct CutProblem {
  llvm::SmallVector<CutGain> gains;
  llvm::SmallVector<llvm::SmallVector<unsigned>> excludes; ///< by candidate, both ways
  llvm::SmallVector<int64_t> sharedCosts;                  ///< by number
};

struct CutChoice {
  llvm::SmallVector<bool> taken; ///< by candidate
  int64_t gain = 0;              ///< of them all
  int64_t bound = 0;             ///< what no choice gains more than: `gain`, where all were looked at
};

CutChoice chooseCuts(const CutProblem &problem);

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_PLACE_REGIONCHOICE_H
