//===- WireKernels.h - what goes over the wire in another type --*- C++ -*-===//
//
// The kernels that conversions are made of, and how many bytes elements are there.
//
// As i4, gradients travel in pairs of an element of a slice's first half and one of its second: the
// pairs, then the scales of `kPairBlock` elements each of the first half, then those of the second.
//
// As i8, elements travel in blocks of `kWireBlock` (the last one of a slice may be shorter): all
// of them as multiples -127 to 127 of their block's scale, then the scales in f32.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_WIRE_WIREKERNELS_H
#define DSOPT_LIB_TRANSFORMS_WIRE_WIREKERNELS_H

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Transforms/Wire/KernelHome.h"

namespace dsopt {

/// Elements that share a scale.
inline constexpr int64_t kWireBlock = 2048;

/// Bytes of a slice of so many elements on the wire, multiples and scales, and with what fills up the last
/// granule: slices are gathered one beside the other.
inline int64_t usedWireBytes(int64_t elements, mlir::Type wire) {
  int64_t bytes = exec::bytesOf(elements, wire);
  return wire.isInteger(8) ? bytes + llvm::divideCeil(elements, kWireBlock) * (int64_t)sizeof(float) : bytes;
}
inline int64_t wireBytes(int64_t elements, mlir::Type wire) {
  return exec::aligned(usedWireBytes(elements, wire));
}

/// Elements of either half of a slice that share a scale.
inline constexpr int64_t kPairBlock = 256;

/// Bytes of pairs of a slice of so many elements, an even number.
inline int64_t pairBytes(int64_t elements) {
  return elements / 2 + 2 * llvm::divideCeil(elements / 2, kPairBlock) * (int64_t)sizeof(float);
}

/// Kernels of conversions, made where one is first needed: beside the target's others where these
/// are in a module of their own (nest-kernels).
class WireKernels {
public:
  explicit WireKernels(mlir::ModuleOp module) : home(module) {}
  /// The first operand's values as those of another type.
  mlir::SymbolRefAttr convert(llvm::StringRef name, mlir::Type from, mlir::Type to);
  /// target += source.
  mlir::SymbolRefAttr accumulate(mlir::Type target, mlir::Type source);
  /// The sum of two values of a type, rounded to it, as one of another.
  mlir::SymbolRefAttr sum(mlir::Type type, mlir::Type to);
  /// Rows of so many elements as multiples of a scale each, and the scales.
  mlir::SymbolRefAttr quantize(mlir::Type from, int64_t row);
  /// And back: multiples times scales.
  mlir::SymbolRefAttr dequantize(mlir::Type to, int64_t row);
  /// Rows of so many pairs: made of two rows of f32 each with a scale, made into such rows, or added to them.
  enum class Pairs { Quantize, Dequantize, Accumulate };
  mlir::SymbolRefAttr pairs(Pairs way, int64_t row);
  /// Elements of 32 bits become zeros, whatever they are: in place, or others of the same number.
  mlir::SymbolRefAttr clear(bool inPlace);

private:
  mlir::SymbolRefAttr get(llvm::StringRef name, llvm::ArrayRef<mlir::Type> operands, mlir::Type result,
                          bool inPlace);
  /// The kernel of that name and type; `write` fills its body where it is new.
  mlir::SymbolRefAttr make(llvm::StringRef name, mlir::FunctionType type, graph::Iteration iteration,
                           llvm::function_ref<void(mlir::func::FuncOp)> write);
  /// A kernel over rows of so many of these types, or of a scale where there is none.
  mlir::SymbolRefAttr overRows(const std::string &name, llvm::ArrayRef<mlir::Type> inputs,
                               llvm::ArrayRef<mlir::Type> results, int64_t row,
                               llvm::function_ref<void(mlir::func::FuncOp)> write);

  KernelHome home;
  llvm::DenseMap<std::pair<mlir::StringAttr, mlir::Type>, mlir::SymbolRefAttr> kernels; ///< by name and type
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_WIRE_WIREKERNELS_H
