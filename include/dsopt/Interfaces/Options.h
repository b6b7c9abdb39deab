//===- Options.h - the options that live in the module ----------*- C++ -*-===//
//
// Compile options are a dictionary attribute `dsopt.options` of the module, so
// that a stage can be continued by hand or by another tool. Keys are the command
// line's names with underscores; the dialect `dsopt` checks them (OptionsDialect.h).
// The driver writes it; passes read it here, and write what their own options say.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_OPTIONS_H
#define DSOPT_INTERFACES_OPTIONS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

#include <algorithm>
#include <string>

namespace dsopt {
inline constexpr llvm::StringLiteral kOptionsAttr = "dsopt.options";

/// The key of a command line's option.
inline std::string optionKey(llvm::StringRef option) {
  std::string key = option.str();
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}
/// The option's attribute, null if it is not given.
inline mlir::Attribute getOption(mlir::ModuleOp module, llvm::StringRef name) {
  auto options = module->getAttrOfType<mlir::DictionaryAttr>(kOptionsAttr);
  return options ? options.get(name) : mlir::Attribute();
}
inline int64_t getOption(mlir::ModuleOp module, llvm::StringRef name, int64_t byDefault) {
  auto value = llvm::dyn_cast_or_null<mlir::IntegerAttr>(getOption(module, name));
  return value ? value.getInt() : byDefault;
}
inline llvm::StringRef getOption(mlir::ModuleOp module, llvm::StringRef name, llvm::StringRef byDefault) {
  auto value = llvm::dyn_cast_or_null<mlir::StringAttr>(getOption(module, name));
  return value ? value.getValue() : byDefault;
}
/// The strings of an array option.
inline llvm::SmallVector<llvm::StringRef> getOptionList(mlir::ModuleOp module, llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> strings;
  if (auto array = llvm::dyn_cast_or_null<mlir::ArrayAttr>(getOption(module, name)))
    for (mlir::Attribute entry : array)
      strings.push_back(llvm::cast<mlir::StringAttr>(entry).getValue());
  return strings;
}
/// Sets one option.
inline void setOption(mlir::ModuleOp module, llvm::StringRef name, mlir::Attribute value) {
  mlir::NamedAttrList list(module->getAttrOfType<mlir::DictionaryAttr>(kOptionsAttr));
  list.set(name, value);
  module->setAttr(kOptionsAttr, list.getDictionary(module.getContext()));
}

/// The module's option, or what a pass's own option says of it unless that is `unset`: it is the module's
/// from here on, so that later stages agree.
inline int64_t takeOption(mlir::ModuleOp module, llvm::StringRef name, int64_t own, int64_t unset,
                          int64_t byDefault) {
  if (own != unset)
    setOption(module, name, mlir::Builder(module.getContext()).getI64IntegerAttr(own));
  return getOption(module, name, byDefault);
}
/// The same of a text; an empty one says nothing.
inline llvm::StringRef takeOption(mlir::ModuleOp module, llvm::StringRef name, llvm::StringRef own,
                                  llvm::StringRef byDefault) {
  if (!own.empty())
    setOption(module, name, mlir::StringAttr::get(module.getContext(), own));
  return getOption(module, name, byDefault);
}
} // namespace dsopt

#endif // DSOPT_INTERFACES_OPTIONS_H
