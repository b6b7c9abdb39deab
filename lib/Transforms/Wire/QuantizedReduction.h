//===- QuantizedReduction.h - gradients in int4, in two exchanges -*- C++ -*-===//
//
// ZeRO++'s reduction (Wang et al., 2023): each rank sends every slice of its gradient, in int4, to the
// rank of its node that has the slice's owner's place; this one adds what it gets and sends the sums of each
// node's slices, in int4, to their owners, which add those of the nodes. Additions are in fp32, in the order
// of the ranks. Where there is one node, or one rank a node, a single exchange is left.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_WIRE_QUANTIZEDREDUCTION_H
#define DSOPT_LIB_TRANSFORMS_WIRE_QUANTIZEDREDUCTION_H

#include "WireKernels.h"
#include "dsopt/Transforms/Order/ProgramBuilder.h"

namespace dsopt {

class QuantizedReduction {
public:
  /// That of `reduce`, over so many ranks.
  QuantizedReduction(exec::ReduceOp reduce, int64_t ranks, int64_t nodeSize);

  /// Writes the first exchange and what comes before it. What lies between parameters is cleared: `gaps`,
  /// in elements of the whole gradient.
  void start(ProgramBuilder &out, WireKernels &kernels, llvm::ArrayRef<std::pair<int64_t, int64_t>> gaps);
  /// Writes the second one, if it is still to come.
  void proceed(ProgramBuilder &out, WireKernels &kernels);
  /// Writes what makes the target of it.
  void finish(ProgramBuilder &out, WireKernels &kernels);

private:
  /// A buffer of so many slices on the wire, beside the whole gradient.
  exec::RefAttr onWire(ProgramBuilder &out, llvm::StringRef suffix, int64_t slices) const;
  /// Sends the whole of `source` over a communicator of so many members, to a new buffer.
  exec::AllToAllOp exchange(ProgramBuilder &out, exec::RefAttr source, llvm::StringRef suffix, int64_t slices,
                            llvm::StringRef communicator, int64_t members) const;
  /// target = (or +=) the parts of a slice, `stride` bytes apart.
  void add(ProgramBuilder &out, WireKernels &kernels, exec::RefAttr target, exec::RefAttr parts,
           int64_t stride, int64_t count, bool accumulate) const;
  /// Runs kernels on the values of a slice and what of them is on the wire.
  void mapSlice(ProgramBuilder &out, WireKernels &kernels, exec::RefAttr values, exec::RefAttr wire,
                WireKernels::Pairs way) const;

  exec::ReduceOp reduce; ///< until the first exchange takes its place
  exec::RefAttr whole, target, parts;
  mlir::FlatSymbolRefAttr stream;
  int64_t elements, part; ///< of a slice, and its bytes on the wire
  int64_t nodeSize, nodes;
  bool accumulate, isBetween = false; ///< between the exchanges
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_WIRE_QUANTIZEDREDUCTION_H
