//===- OptionsDialect.h - dsopt.options, checked ----------------*- C++ -*-===//
//
// The dialect `dsopt` has one attribute: the module's compile options
// (Interfaces/Options.h). What each may be follows from the table of options.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_OPTIONSDIALECT_H
#define DSOPT_INTERFACES_OPTIONSDIALECT_H

#include "mlir/IR/Dialect.h"

namespace dsopt {
class OptionsDialect : public mlir::Dialect {
public:
  explicit OptionsDialect(mlir::MLIRContext *context);
  static constexpr llvm::StringLiteral getDialectNamespace() { return "dsopt"; }

  mlir::LogicalResult verifyOperationAttribute(mlir::Operation *op, mlir::NamedAttribute attribute) override;
  mlir::LogicalResult verifyRegionArgAttribute(mlir::Operation *op, unsigned region, unsigned argument,
                                               mlir::NamedAttribute attribute) override;
  mlir::LogicalResult verifyRegionResultAttribute(mlir::Operation *op, unsigned region, unsigned result,
                                                  mlir::NamedAttribute attribute) override;
};
} // namespace dsopt

MLIR_DECLARE_EXPLICIT_TYPE_ID(dsopt::OptionsDialect)

#endif // DSOPT_INTERFACES_OPTIONSDIALECT_H
