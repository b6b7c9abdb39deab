//===- Options.h - the options that live in the module ----------*- C++ -*-===//
//
// Compile options are a dictionary attribute `dsopt.options` of the module, so
// that a stage can be continued by hand or by another tool. Keys are the names of the
// table (Options.def); the dialect `dsopt` checks them (OptionsDialect.h). The driver
// writes what was given; passes ask options::NAME(module), and write what their own
// options say.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_INTERFACES_OPTIONS_H
#define DSOPT_INTERFACES_OPTIONS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

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
/// For each option that modules keep a function of its name: a number, a text or the strings of a list. Of
/// one that was not given the table's default; none where it has none.
namespace options {
namespace detail {
constexpr bool isList(std::string_view kind) { return kind == "TextList" || kind == "PairList"; }
/// Whether a kind of options, or a choice between numbers, is kept as a number.
constexpr bool isNumber(std::string_view kind, std::string_view form) {
  return kind == "Count" || kind == "Integer" || kind == "Bytes" ||
         (kind == "Choice" && form.find_first_not_of("0123456789|") == std::string_view::npos);
}
constexpr int64_t toNumber(std::string_view digits) {
  int64_t number = 0;
  for (char digit : digits)
    number = number * 10 + (digit - '0');
  return number;
}
template <bool isList, bool isNumber, bool hasDefault>
auto get(mlir::ModuleOp module, llvm::StringRef name, std::string_view byDefault) {
  if constexpr (isList) {
    return getOptionList(module, name);
  } else if constexpr (isNumber) {
    auto value = llvm::dyn_cast_or_null<mlir::IntegerAttr>(getOption(module, name));
    if constexpr (hasDefault)
      return value ? value.getInt() : toNumber(byDefault);
    else
      return value ? std::optional<int64_t>(value.getInt()) : std::nullopt;
  } else {
    auto value = llvm::dyn_cast_or_null<mlir::StringAttr>(getOption(module, name));
    if constexpr (hasDefault)
      return value ? value.getValue() : llvm::StringRef(byDefault);
    else
      return value ? std::optional<llvm::StringRef>(value.getValue()) : std::nullopt;
  }
}
} // namespace detail

#define DSOPT_GETTER_No(name, kind, form, byDefault)
#define DSOPT_GETTER_Kept(name, kind, form, byDefault)                                                       \
  inline auto name(mlir::ModuleOp module) {                                                                  \
    return detail::get<detail::isList(#kind), detail::isNumber(#kind, form), sizeof(byDefault) != 1>(        \
        module, #name, byDefault);                                                                           \
  }
#define DSOPT_GETTER_Built(name, kind, form, byDefault) DSOPT_GETTER_Kept(name, kind, form, byDefault)
#define DSOPT_OPTION(name, use, kept, ranks, kind, form, byDefault, group, state, help)                      \
  DSOPT_GETTER_##kept(name, kind, form, byDefault)
#include "dsopt/Runtime/Options.def"
#undef DSOPT_GETTER_Built
#undef DSOPT_GETTER_Kept
#undef DSOPT_GETTER_No
} // namespace options

/// Sets one option.
inline void setOption(mlir::ModuleOp module, llvm::StringRef name, mlir::Attribute value) {
  mlir::NamedAttrList list(module->getAttrOfType<mlir::DictionaryAttr>(kOptionsAttr));
  list.set(name, value);
  module->setAttr(kOptionsAttr, list.getDictionary(module.getContext()));
}

/// What a pass's own option says of the module's, unless that is `unset`, is the module's from here on: the
/// pass and later stages ask the module, and agree.
inline void giveOption(mlir::ModuleOp module, llvm::StringRef name, int64_t own, int64_t unset) {
  if (own != unset)
    setOption(module, name, mlir::Builder(module.getContext()).getI64IntegerAttr(own));
}
/// The same of a text; an empty one says nothing.
inline void giveOption(mlir::ModuleOp module, llvm::StringRef name, llvm::StringRef own) {
  if (!own.empty())
    setOption(module, name, mlir::StringAttr::get(module.getContext(), own));
}
} // namespace dsopt

#endif // DSOPT_INTERFACES_OPTIONS_H
