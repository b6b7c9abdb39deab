//===- AttributeTable.h - what a dialect's attributes may be ----*- C++ -*-===//
//
// Attributes that a dialect leaves on operations it does not own (functions, their
// arguments, the module) have no definition that a verifier comes from. Each dialect
// has one table of them instead: where each may stand and what it is. A name that
// is not in the table, another place and another value are errors.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_ATTRIBUTETABLE_H
#define DSOPT_INTERFACES_ATTRIBUTETABLE_H

#include "mlir/IR/Operation.h"

namespace dsopt {
/// What an attribute may stand on.
enum class AttributePlace { Module, Function, Argument, Result, Operation };

/// What an attribute may be.
struct AttributeKind {
  llvm::StringLiteral expected; ///< in messages
  bool (*holds)(mlir::Attribute value);
};

/// What `holds` is of an attribute of one class.
template <typename AttrTy> bool isAttribute(mlir::Attribute value) { return llvm::isa<AttrTy>(value); }

/// The kinds that several dialects have.
extern const AttributeKind kUnitKind, kCountKind, kIntegerKind, kFactorKind, kTextKind, kTypeKind,
    kSymbolKind, kExtentsKind, kDictionaryKind, kCountsKind, kTextsKind, kDictionariesKind;

/// A row of a dialect's table; a name has one for each of its places.
struct AttributeRow {
  llvm::StringLiteral name;
  AttributePlace place;
  const AttributeKind &kind;
  /// The names of the operations it may stand on; one that ends in '.' is all of a dialect.
  llvm::ArrayRef<llvm::StringLiteral> operations = {};
  /// Where it is an interface that says on which operations: whether it may stand on this one; `operations`
  /// describe them in messages then.
  bool (*mayStandOn)(mlir::Operation *op) = nullptr;
};

/// Checks an attribute of an operation, or of an argument or result of a function.
mlir::LogicalResult verifyAttribute(llvm::ArrayRef<AttributeRow> table, mlir::Operation *op,
                                    mlir::NamedAttribute attribute);
mlir::LogicalResult verifyArgumentAttribute(llvm::ArrayRef<AttributeRow> table, mlir::Operation *op,
                                            unsigned argument, mlir::NamedAttribute attribute);
mlir::LogicalResult verifyResultAttribute(llvm::ArrayRef<AttributeRow> table, mlir::Operation *op,
                                          unsigned result, mlir::NamedAttribute attribute);
/// "; did you mean 'NAME'?" where one of `names` is spelled nearly so, else nothing.
std::string nearestName(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> names);
} // namespace dsopt

#endif // DSOPT_INTERFACES_ATTRIBUTETABLE_H
