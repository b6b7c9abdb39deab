//===- EmitObjects.cpp - the LLVM dialect to objects in memory ------------===//

#include "CompileGroups.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "llvm/IR/Constants.h"

using namespace mlir;
using namespace dsopt;

namespace {
/// `NAME` and `NAME_bytes`, the length, as read-only data.
void addTable(llvm::Module &module, StringRef name, StringRef bytes) {
  auto add = [&](const llvm::Twine &symbol, llvm::Constant *value) {
    auto *global = new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                                            llvm::GlobalValue::ExternalLinkage, value, symbol);
    global->setSection(".rodata");
    global->setAlignment(llvm::Align(64));
  };
  add(name, llvm::ConstantDataArray::getString(module.getContext(), bytes));
  add(name + "_bytes", llvm::ConstantInt::get(llvm::Type::getInt64Ty(module.getContext()), bytes.size()));
}

/// The modules that hold the host's code: those of kernels, unless they are a device's, then that of
/// segments.
SmallVector<ModuleOp> codeModules(ModuleOp module) {
  SmallVector<ModuleOp> modules;
  for (auto nested : module.getOps<ModuleOp>())
    if (auto target = nested->getAttrOfType<TargetAttr>(kTargetAttr);
        !target || target.getKind() == TargetKind::CPU)
      modules.push_back(nested);
  modules.push_back(module);
  return modules;
}

/// Moves to one part what another has and it has not: what the first defines, the second may declare.
void append(ModuleOp part, ModuleOp other) {
  SymbolTable symbols(part);
  for (Operation &op : llvm::make_early_inc_range(*other.getBody())) {
    if (symbols.lookup(SymbolTable::getSymbolName(&op)))
      continue;
    op.remove();
    symbols.insert(&op);
  }
}
} // namespace

void dsopt::registerTargetDialects(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

LogicalResult dsopt::emitLLVM(ModuleOp module, raw_ostream &os) {
  FailureOr<TargetAttr> target = getHostTarget(module);
  auto machine = succeeded(target) ? makeMachine(module, *target, 3) : nullptr;
  if (!machine)
    return failure();
  OwningOpRef<ModuleOp> whole = ModuleOp::create(module.getLoc());
  for (ModuleOp code : codeModules(module)) {
    SmallVector<Operation *> functions, roots;
    collectRoots(code, functions, roots);
    roots.append(functions);
    SymbolTable symbols(code);
    append(*whole, *extract(code, symbols, roots));
  }
  llvm::LLVMContext context;
  auto translated = translate(*whole, *target, *machine, context);
  if (!translated)
    return failure();
  translated->print(os, nullptr);
  return success();
}

LogicalResult dsopt::emitObjects(ModuleOp module, const ObjectOptions &options, const ProgramTable &program,
                                 StringRef model, ObjectBuffers &objects, StringRef images,
                                 KnownKernels known) {
  std::vector<Group> groups;
  auto addTables = [&](llvm::Module &tables) {
    addTable(tables, "dsopt_program", program.text);
    addTable(tables, "dsopt_actions", program.actions);
    addTable(tables, "dsopt_model", model);
    if (!program.texts.empty())
      addTable(tables, "dsopt_texts", program.texts);
    if (!images.empty())
      addTable(tables, "dsopt_images", images);
  };
  for (ModuleOp code : codeModules(module)) {
    FailureOr<TargetAttr> target = getHostTarget(code);
    // Segments only declare kernels.
    KnownKernels none;
    if (failed(target) ||
        failed(collectGroups(code, *target, options.optLevel, code == module ? AddData(addTables) : nullptr,
                             groups, code == module ? none : known)))
      return failure();
  }
  return compileGroups(module, groups, options, objects);
}
