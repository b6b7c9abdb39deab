//===- Target.cpp - what a module is compiled for -------------------------===//

#include "dsopt/Interfaces/Target.h"

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/OptionsDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dsopt;

#include "dsopt/Interfaces/TargetEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dsopt/Interfaces/TargetAttrs.cpp.inc"

void OptionsDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dsopt/Interfaces/TargetAttrs.cpp.inc"
      >();
}

LogicalResult TargetAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, TargetKind kind,
                                 StringRef triple, StringRef arch, int64_t threads, int64_t vectorBits,
                                 ArrayAttr features) {
  if (triple.empty() || arch.empty())
    return emitError() << "target has no " << (triple.empty() ? "triple" : "arch")
                       << ", expected LLVM's name";
  if (threads < 1)
    return emitError() << "target has threads = " << threads << ", expected 1 or more";
  if (!llvm::is_contained({128, 256, 512}, vectorBits))
    return emitError() << "target has vector_bits = " << vectorBits << ", expected 128, 256 or 512";
  for (Attribute feature : features) {
    auto text = dyn_cast<StringAttr>(feature);
    if (!text || text.getValue().size() < 2 || !llvm::is_contained({'+', '-'}, text.getValue().front()))
      return emitError() << "target has feature " << feature << R"(, expected "+NAME" or "-NAME")";
  }
  return success();
}

bool TargetAttr::hasFeature(StringRef name) {
  return llvm::any_of(getFeatures().getAsValueRange<StringAttr>(), [&](StringRef feature) {
    return feature.front() == '+' && feature.drop_front() == name;
  });
}

FailureOr<TargetAttr> dsopt::getTarget(ModuleOp module) {
  if (auto target = module->getAttrOfType<TargetAttr>(kTargetAttr))
    return target;
  return module.emitError("module ") << (module.getSymName() ? "@" + *module.getSymName() + " " : StringRef())
                                     << "has no " << kTargetAttr << ", expected what attach-target says";
}

bool dsopt::isForDevice(Operation *op) {
  for (; op; op = op->getParentOp()) {
    auto module = dyn_cast<ModuleOp>(op);
    if (!module)
      continue;
    if (auto target = module->getAttrOfType<TargetAttr>(kTargetAttr))
      return target.getKind() != TargetKind::CPU;
    if (getOption(module, "target"))
      return options::target(module) != "cpu";
  }
  return false;
}

std::string dsopt::deviceName(StringRef kernel) {
  std::string made = kernel.str();
  std::replace(made.begin(), made.end(), '.', '$');
  return made;
}
