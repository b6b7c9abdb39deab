//===- OptionsDialect.h - dsopt.options and dsopt.target, checked -*- C++ -*-===//
//
// The dialect `dsopt` has two attributes of modules: the compile options
// (Interfaces/Options.h), of which what each may be follows from the table of
// options, and the target (Interfaces/Target.h).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_OPTIONSDIALECT_H
#define DSOPT_INTERFACES_OPTIONSDIALECT_H

#include "mlir/IR/Dialect.h"

namespace dsopt {
/// The keys of dsopt.options that programs follow from; the others are read when a program is written or run.
llvm::SmallVector<llvm::StringRef> builtOptions();

class OptionsDialect : public mlir::Dialect {
public:
  explicit OptionsDialect(mlir::MLIRContext *context);
  static constexpr llvm::StringLiteral getDialectNamespace() { return "dsopt"; }

  mlir::Attribute parseAttribute(mlir::DialectAsmParser &parser, mlir::Type type) const override;
  void printAttribute(mlir::Attribute attribute, mlir::DialectAsmPrinter &printer) const override;

  mlir::LogicalResult verifyOperationAttribute(mlir::Operation *op, mlir::NamedAttribute attribute) override;
  mlir::LogicalResult verifyRegionArgAttribute(mlir::Operation *op, unsigned region, unsigned argument,
                                               mlir::NamedAttribute attribute) override;
  mlir::LogicalResult verifyRegionResultAttribute(mlir::Operation *op, unsigned region, unsigned result,
                                                  mlir::NamedAttribute attribute) override;

private:
  void registerAttributes();
};
} // namespace dsopt

MLIR_DECLARE_EXPLICIT_TYPE_ID(dsopt::OptionsDialect)

#endif // DSOPT_INTERFACES_OPTIONSDIALECT_H
