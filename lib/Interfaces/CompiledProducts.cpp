//===- CompiledProducts.cpp - which products a host has kernels for -------===//

#include "dsopt/Interfaces/CompiledProducts.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using namespace dsopt;

bool dsopt::multipliesTiles(TargetAttr target, Type operands) {
  return operands.isBF16() && target.hasFeature("amx-tile") && target.hasFeature("amx-bf16");
}

bool dsopt::widensVectors(TargetAttr target, Type operands) {
  if (!operands.isBF16())
    return operands.isF16();
  // Vectors of Intel's processors with AMX do half as much in bf16 as in fp32.
  bool isSlow = llvm::is_contained({"sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d"},
                                   target.getArch());
  bool hasPairs = target.hasFeature("avx512bf16") && target.getVectorBits() == 512;
  return isSlow || !hasPairs;
}

bool dsopt::widensOperands(TargetAttr target, Type operands) {
  return widensVectors(target, operands) && !multipliesTiles(target, operands);
}

bool dsopt::compilesProducts(TargetAttr target, Type operands, Type result) {
  if (target.getKind() != TargetKind::CPU || (result != operands && !result.isF32()))
    return false;
  // Without these instructions it would be a call of a library for each element.
  bool isX86 = llvm::Triple(target.getTriple()).isX86();
  bool hasFused = !isX86 || target.hasFeature("fma"), hasHalves = !isX86 || target.hasFeature("f16c");
  return hasFused && (operands.isF32() || operands.isBF16() || (operands.isF16() && hasHalves));
}

int64_t dsopt::productLanes(TargetAttr target) { return target.getVectorBits() / 32; }

int64_t dsopt::packedElements(TargetAttr target, Type operands, int64_t n, int64_t k) {
  int64_t inLane = widensOperands(target, operands) ? 1 : 32 / operands.getIntOrFloatBitWidth();
  return llvm::alignTo(n, productLanes(target)) * llvm::alignTo(k, inLane);
}
