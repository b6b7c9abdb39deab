//===- OptionsDialect.cpp - dsopt.options and dsopt.target, checked -------===//

#include "dsopt/Interfaces/OptionsDialect.h"

#include "dsopt/Interfaces/AttributeTable.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dsopt;

MLIR_DEFINE_EXPLICIT_TYPE_ID(dsopt::OptionsDialect)

namespace {
/// What of a row of the table the module is checked against.
struct Row {
  StringRef key, use, kept, kind, form;
  bool isKept() const { return kept != "No"; }
};
} // namespace

static constexpr Row kRows[] = {
#define DSOPT_OPTION(name, use, kept, ranks, kind, form, byDefault, group, state, help)                      \
  {#name, #use, #kept, #kind, form},
#include "dsopt/Runtime/Options.def"
};

static bool isSwitch(Attribute value) {
  return kCountKind.holds(value) && cast<IntegerAttr>(value).getInt() <= 1;
}

static bool isPositive(Attribute value) {
  return kCountKind.holds(value) && cast<IntegerAttr>(value).getInt() > 0;
}

/// The options of a run by their names on the command line, and their texts.
static bool areRunDefaults(Attribute value) {
  auto defaults = dyn_cast<DictionaryAttr>(value);
  return defaults && llvm::all_of(defaults, [](NamedAttribute one) {
           return isa<StringAttr>(one.getValue()) && llvm::any_of(kRows, [&](const Row &row) {
                    return optionKey(one.getName()) == row.key && row.use == "Run";
                  });
         });
}

static const AttributeKind kSwitchKind = {"an i64 of 0 or 1", isSwitch};
static const AttributeKind kPositiveKind = {"an i64 of 1 or more", isPositive};
static const AttributeKind kRunDefaultsKind = {"a dictionary of a run's options as strings", areRunDefaults};

namespace {
/// What a module keeps that is no option as it is given.
struct Derived {
  llvm::StringLiteral key;
  const AttributeKind &kind;
  bool isBuilt = false; ///< programs follow from it
};
} // namespace

static const Derived kDerived[] = {
    {"clip", kSwitchKind, true},     // -grad-clip is above 0
    {"momentum", kSwitchKind, true}, // -momentum is above 0
    {"train", kSwitchKind},          // no evaluation alone
    {"generate", kSwitchKind},       // from prompts
    {"command", kTextKind},          // what was called
    {"run_defaults", kRunDefaultsKind},
    {"tile_products", kCountKind},   // elements of what -tile-products leaves whole; 0: everything
    {"stage_starts", kExtentsKind},  // the first block of each pipeline stage
    {"shard_cuts", kTextsKind},      // PARAMETER=DIM of all that the largest size of a dimension has cut
    {"prefetch_memory", kCountKind}, // bytes up to which gathers start early
};

SmallVector<StringRef> dsopt::builtOptions() {
  SmallVector<StringRef> keys;
  for (const Row &row : kRows)
    if (row.kept == "Built")
      keys.push_back(row.key);
  for (const Derived &derived : kDerived)
    if (derived.isBuilt)
      keys.push_back(derived.key);
  return keys;
}

/// The words of a choice that there are.
static SmallVector<StringRef> wordsOf(const Row &row) {
  SmallVector<StringRef> words;
  row.form.split(words, '|');
  llvm::erase_if(words, [](StringRef word) { return word.starts_with("!"); });
  return words;
}

/// Whether a value is a word of a choice; `*N` of a word stands for a number of 1 or more.
static bool isWord(StringRef word, StringRef value) {
  int64_t number;
  return word.consume_back("*N") ? value.consume_front(word) && value.consume_front("*") &&
                                       !value.getAsInteger(10, number) && number >= 1
                                 : word == value;
}

/// What is wrong with the value of an option: what was expected; empty if nothing is.
static std::string expectedOf(const Row &row, Attribute value) {
  auto expects = [&](const AttributeKind &kind) { return kind.holds(value) ? "" : kind.expected.str(); };
  if (row.kind == "Choice") {
    SmallVector<StringRef> words = wordsOf(row);
    bool numbers = llvm::all_of(words, [](StringRef word) { return llvm::all_of(word, llvm::isDigit); });
    if (numbers ? kCountKind.holds(value) &&
                      llvm::is_contained(words, std::to_string(cast<IntegerAttr>(value).getInt()))
                : isa<StringAttr>(value) && llvm::any_of(words, [&](StringRef word) {
                    return isWord(word, cast<StringAttr>(value));
                  }))
      return "";
    return (numbers ? "an i64, one of " : "a string, one of ") + llvm::join(words, ", ");
  }
  if (row.kind == "Count")
    return expects(kPositiveKind);
  if (row.kind == "Integer" || row.kind == "Bytes")
    return expects(kCountKind);
  if (row.kind == "TextList" || row.kind == "PairList")
    return expects(kTextsKind);
  return expects(kTextKind);
}

static LogicalResult verifyOption(Operation *op, NamedAttribute option) {
  StringRef key = option.getName();
  std::vector<std::string> keys;
  std::string expected;
  bool found = false;
  for (const Derived &derived : kDerived) {
    keys.push_back(derived.key.str());
    if (derived.key != key)
      continue;
    found = true;
    expected = derived.kind.holds(option.getValue()) ? "" : derived.kind.expected.str();
  }
  for (const Row &row : kRows) {
    if (!row.isKept())
      continue;
    keys.push_back(row.key.str());
    if (keys.back() != key)
      continue;
    found = true;
    expected = expectedOf(row, option.getValue());
  }
  if (!found)
    return op->emitError("dsopt.options has '")
           << key << "', which is no compile option"
           << nearestName(key, SmallVector<StringRef>(keys.begin(), keys.end()));
  if (!expected.empty())
    return op->emitError("dsopt.options has ")
           << key << " = " << option.getValue() << ", expected " << expected;
  return success();
}

OptionsDialect::OptionsDialect(MLIRContext *context)
    : Dialect(getDialectNamespace(), context, TypeID::get<OptionsDialect>()) {
  registerAttributes();
}

static const AttributeKind kTargetKind = {"a #dsopt.target", isAttribute<TargetAttr>};

/// What the target says, nobody else does; a CPU's kernels are called by segments of the module around them.
static LogicalResult verifyTarget(ModuleOp module, TargetAttr target) {
  for (StringRef option : {"arch", "target", "threads"})
    if (getOption(module, option))
      return module.emitError("dsopt.options has ")
             << option << " beside " << kTargetAttr << ", which says it";
  auto outer = module->getParentOfType<ModuleOp>();
  auto around = outer ? outer->getAttrOfType<TargetAttr>(kTargetAttr) : TargetAttr();
  if (around && target.getKind() == around.getKind() && target != around)
    return module.emitError("module is for ")
           << target.getArch() << " and " << target.getThreads() << " threads, the one around it for "
           << around.getArch() << " and " << around.getThreads() << ", expected one target of a kind";
  return success();
}

LogicalResult OptionsDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  static const AttributeRow table[] = {{kOptionsAttr, AttributePlace::Module, kDictionaryKind},
                                       {kTargetAttr, AttributePlace::Module, kTargetKind}};
  if (failed(verifyAttribute(table, op, attribute)))
    return failure();
  if (auto target = dyn_cast<TargetAttr>(attribute.getValue()))
    return verifyTarget(cast<ModuleOp>(op), target);
  for (NamedAttribute option : cast<DictionaryAttr>(attribute.getValue()))
    if (failed(verifyOption(op, option)))
      return failure();
  return success();
}

LogicalResult OptionsDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                       NamedAttribute attribute) {
  return verifyArgumentAttribute({}, op, argument, attribute);
}

LogicalResult OptionsDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned result,
                                                          NamedAttribute attribute) {
  return verifyResultAttribute({}, op, result, attribute);
}
