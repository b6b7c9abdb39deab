//===- Gathered.h - what gathers keep whole, in elements --------*- C++ -*-===//
//
// Parameters that a gather makes whole, run by run: what -max-live-parameters and
// -prefetch-bucket-size count, and why a gather could not be where it should.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_OVERLAP_GATHERED_H
#define DSOPT_LIB_TRANSFORMS_OVERLAP_GATHERED_H

#include "dsopt/Dialect/Exec/Exec.h"

#include "llvm/ADT/MapVector.h"

namespace dsopt {

/// How many elements of parameters a program's buffers hold whole.
class GatheredElements {
public:
  explicit GatheredElements(exec::ProgramOp program);
  int64_t of(mlir::FlatSymbolRefAttr buffer) const { return elements.lookup(buffer.getAttr()); }

private:
  llvm::DenseMap<mlir::StringAttr, int64_t> elements;
};

/// Collects why gathers could not be where they should, one remark for each buffer and reason.
class GatherRemarks {
public:
  explicit GatherRemarks(llvm::StringRef name) : name(name) {}
  void add(exec::GatherOp gather, const llvm::Twine &reason);
  /// Says them at the first gather of each: `what` is what those are not.
  void emit(llvm::StringRef what);

private:
  struct Missed {
    exec::GatherOp first;
    int64_t gathers = 0;
  };
  llvm::StringRef name;
  llvm::MapVector<std::pair<mlir::Attribute, mlir::StringAttr>, Missed> missed;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_OVERLAP_GATHERED_H
