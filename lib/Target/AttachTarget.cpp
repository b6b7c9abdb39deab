//===- AttachTarget.cpp - say what the module is compiled for -------------===//

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/OptionsDialect.h"
#include "dsopt/Target/Passes.h"
#include "dsopt/Target/Target.h"

namespace dsopt {
#define GEN_PASS_DEF_ATTACHTARGET
#include "dsopt/Target/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct AttachTarget : dsopt::impl::AttachTargetBase<AttachTarget> {
  using AttachTargetBase::AttachTargetBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto present = module->getAttrOfType<TargetAttr>(kTargetAttr);
    if (present && arch.empty() && threads == 0 && target.empty())
      return;
    std::string kindName = !target.empty() ? target.getValue()
                           : present       ? stringifyTargetKind(present.getKind()).str()
                                           : options::target(module).str();
    std::optional<TargetKind> kind = symbolizeTargetKind(kindName);
    if (!kind) {
      module.emitError("unknown target '") << kindName << "', expected cpu or cuda";
      return signalPassFailure();
    }
    int64_t otherwise = present ? present.getThreads() : options::threads(module).value_or(1);
    FailureOr<TargetAttr> found =
        resolveTarget(module.getLoc(), *kind, arch.empty() ? options::arch(module) : StringRef(arch),
                      threads ? int64_t(threads) : otherwise);
    if (failed(found))
      return signalPassFailure();
    if (present && *found != present) {
      module.emitError("module is for ")
          << present.getArch() << " and " << present.getThreads() << " threads, got " << found->getArch()
          << " and " << found->getThreads() << ": a target is attached once";
      return signalPassFailure();
    }
    if (auto present = module->getAttrOfType<DictionaryAttr>(kOptionsAttr)) {
      NamedAttrList options(present);
      options.erase("arch");
      options.erase("target");
      options.erase("threads");
      module->setAttr(kOptionsAttr, options.getDictionary(&getContext()));
    }
    module->setAttr(kTargetAttr, *found);
  }
};
} // namespace
