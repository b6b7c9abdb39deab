//===- Target.h - what a module is compiled for -----------------*- C++ -*-===//
//
// See Target.td. attach-target sets the attribute; what depends on the machine
// reads it here and nowhere else.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_TARGET_H
#define DSOPT_INTERFACES_TARGET_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OpImplementation.h"

#include "dsopt/Interfaces/TargetEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dsopt/Interfaces/TargetAttrs.h.inc"

namespace dsopt {
inline constexpr llvm::StringLiteral kTargetAttr = "dsopt.target";

/// What the module is compiled for; one that does not say so is an error.
llvm::FailureOr<TargetAttr> getTarget(mlir::ModuleOp module);

/// Whether the module's code, or that around it, is for a device: what its target says, or its options before
/// attach-target.
bool isForDevice(mlir::Operation *op);
/// A kernel's name in PTX, which has no dots in names.
std::string deviceName(llvm::StringRef kernel);
} // namespace dsopt

#endif // DSOPT_INTERFACES_TARGET_H
