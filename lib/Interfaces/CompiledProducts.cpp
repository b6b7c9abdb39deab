//===- CompiledProducts.cpp - which products a host has kernels for -------===//

#include "dsopt/Interfaces/CompiledProducts.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using namespace dsopt;

static bool hasFeature(TargetAttr target, StringRef name) {
  return llvm::any_of(target.getFeatures().getAsValueRange<StringAttr>(), [&](StringRef feature) {
    return feature.front() == '+' && feature.drop_front() == name;
  });
}

bool dsopt::multipliesTiles(TargetAttr target, Type operands) {
  return operands.isBF16() && hasFeature(target, "amx-tile") && hasFeature(target, "amx-bf16");
}

bool dsopt::compilesProducts(TargetAttr target, Type operands, Type result) {
  if (target.getKind() != TargetKind::CPU)
    return false;
  if (operands.isBF16())
    return hasFeature(target, "avx512bf16") && target.getVectorBits() == 512 &&
           (result.isF32() || result.isBF16());
  // Where there is no fused multiplication and addition it would be a call of a library.
  return operands.isF32() && result.isF32() &&
         (!llvm::Triple(target.getTriple()).isX86() || hasFeature(target, "fma"));
}

int64_t dsopt::productLanes(TargetAttr target) { return target.getVectorBits() / 32; }

int64_t dsopt::packedElements(TargetAttr target, Type operands, int64_t n, int64_t k) {
  return llvm::alignTo(n, productLanes(target)) * llvm::alignTo(k, 32 / operands.getIntOrFloatBitWidth());
}
