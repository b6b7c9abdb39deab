//===- AttributeTable.cpp - what a dialect's attributes may be ------------===//

#include "dsopt/Interfaces/AttributeTable.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace dsopt {

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

static bool isInteger(Attribute value) {
  auto integer = dyn_cast<IntegerAttr>(value);
  return integer && integer.getType().isSignlessInteger(64);
}

static bool isCount(Attribute value) { return isInteger(value) && cast<IntegerAttr>(value).getInt() >= 0; }

static bool isFactor(Attribute value) {
  auto number = dyn_cast<FloatAttr>(value);
  return number && number.getType().isF64() && number.getValueAsDouble() >= 0;
}

static bool isFloatType(Attribute value) {
  auto type = dyn_cast<TypeAttr>(value);
  return type && isa<FloatType>(type.getValue());
}

static bool areExtents(Attribute value) {
  auto extents = dyn_cast<DenseI64ArrayAttr>(value);
  return extents && llvm::all_of(extents.asArrayRef(), [](int64_t extent) { return extent >= 0; });
}

static bool areCounts(Attribute value) {
  auto entries = dyn_cast<DictionaryAttr>(value);
  return entries && llvm::all_of(entries, [](NamedAttribute one) { return isCount(one.getValue()); });
}

template <typename AttrTy> static bool areAll(Attribute value) {
  auto entries = dyn_cast<ArrayAttr>(value);
  return entries && llvm::all_of(entries, llvm::IsaPred<AttrTy>);
}

const AttributeKind kUnitKind = {"no value (unit)", isAttribute<UnitAttr>};
const AttributeKind kCountKind = {"an i64 of 0 or more", isCount};
const AttributeKind kIntegerKind = {"an i64", isInteger};
const AttributeKind kFactorKind = {"an f64 of 0 or more", isFactor};
const AttributeKind kTextKind = {"a string", isAttribute<StringAttr>};
const AttributeKind kTypeKind = {"a type of floats", isFloatType};
const AttributeKind kSymbolKind = {"a symbol of this module", isAttribute<FlatSymbolRefAttr>};
const AttributeKind kExtentsKind = {"an array<i64> of 0 or more each", areExtents};
const AttributeKind kDictionaryKind = {"a dictionary", isAttribute<DictionaryAttr>};
const AttributeKind kCountsKind = {"a dictionary of i64s of 0 or more", areCounts};
const AttributeKind kTextsKind = {"an array of strings", areAll<StringAttr>};
const AttributeKind kDictionariesKind = {"an array of dictionaries", areAll<DictionaryAttr>};

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

std::string nearestName(StringRef name, ArrayRef<StringRef> names) {
  StringRef nearest;
  unsigned least = std::max<unsigned>(1, name.size() / 4) + 1;
  for (StringRef known : names)
    if (unsigned distance = name.edit_distance(known); distance < least) {
      nearest = known;
      least = distance;
    }
  return nearest.empty() ? "" : ("; did you mean '" + nearest + "'?").str();
}

static bool matches(StringRef operation, ArrayRef<llvm::StringLiteral> patterns) {
  return llvm::any_of(patterns, [&](StringRef pattern) {
    return pattern.ends_with(".") ? operation.starts_with(pattern) : operation == pattern;
  });
}

/// "a function", "graph.gather" ...: where a row says that the attribute belongs.
static std::string describePlace(const AttributeRow &row) {
  switch (row.place) {
  case AttributePlace::Module:
    return "a module";
  case AttributePlace::Function:
    return "a function";
  case AttributePlace::Argument:
    return "a function's argument";
  case AttributePlace::Result:
    return "a function's result";
  case AttributePlace::Operation:
    break;
  }
  std::vector<std::string> names;
  for (StringRef name : row.operations)
    names.push_back(name.ends_with(".") ? ("an operation of " + name.drop_back()).str() : name.str());
  return llvm::join(names, " or ");
}

/// Checks `attribute`, which stands where `isHere` says of a row: on `part` of the operation, or on itself
/// where that is empty.
static LogicalResult verify(ArrayRef<AttributeRow> table, Operation *op, NamedAttribute attribute,
                            const std::string &part, function_ref<bool(const AttributeRow &)> isHere) {
  StringRef name = attribute.getName();
  auto isRow = [&](const AttributeRow &row) { return row.name == name && isHere(row); };
  const AttributeRow *found = llvm::find_if(table, isRow);
  if (found != table.end() && found->kind.holds(attribute.getValue()))
    return success();
  std::string of = part.empty() ? "" : " of " + part;
  if (found != table.end())
    return op->emitError("attribute '")
           << name << "'" << of << " is " << attribute.getValue() << ", expected " << found->kind.expected;
  std::vector<std::string> places;
  SmallVector<StringRef> names;
  for (const AttributeRow &row : table) {
    names.push_back(row.name);
    if (row.name == name)
      places.push_back(describePlace(row));
  }
  if (places.empty())
    return op->emitError("attribute '") << name << "'" << of << " does not exist" << nearestName(name, names);
  return op->emitError("attribute '") << name << "' stands on " << (part.empty() ? "" : part + " of ") << "'"
                                      << op->getName() << "', expected it on " << llvm::join(places, " or ");
}

LogicalResult verifyAttribute(ArrayRef<AttributeRow> table, Operation *op, NamedAttribute attribute) {
  return verify(table, op, attribute, "", [&](const AttributeRow &row) {
    return row.place == AttributePlace::Module      ? isa<ModuleOp>(op)
           : row.place == AttributePlace::Function  ? isa<FunctionOpInterface>(op)
           : row.place != AttributePlace::Operation ? false
           : row.mayStandOn                         ? row.mayStandOn(op)
                                                    : matches(op->getName().getStringRef(), row.operations);
  });
}

LogicalResult verifyArgumentAttribute(ArrayRef<AttributeRow> table, Operation *op, unsigned argument,
                                      NamedAttribute attribute) {
  return verify(table, op, attribute, "argument " + std::to_string(argument),
                [](const AttributeRow &row) { return row.place == AttributePlace::Argument; });
}

LogicalResult verifyResultAttribute(ArrayRef<AttributeRow> table, Operation *op, unsigned result,
                                    NamedAttribute attribute) {
  return verify(table, op, attribute, "result " + std::to_string(result),
                [](const AttributeRow &row) { return row.place == AttributePlace::Result; });
}

} // namespace dsopt
