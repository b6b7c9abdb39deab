//===- CompileGroups.cpp - functions compiled in groups -------------------===//

#include "CompileGroups.h"
#include "GenerateCode.h"
#include "Helpers.h"
#include "ObjectCache.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/InstIterator.h"
#include <atomic>
#include <mutex>

using namespace mlir;
using namespace dsopt;

static bool isLocal(Operation *op) {
  auto local = [](LLVM::Linkage linkage) {
    return linkage == LLVM::Linkage::Internal || linkage == LLVM::Linkage::Private;
  };
  if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op))
    return local(function.getLinkage());
  return local(cast<LLVM::GlobalOp>(op).getLinkage());
}

OwningOpRef<ModuleOp> dsopt::extract(ModuleOp module, SymbolTable &symbols, ArrayRef<Operation *> roots) {
  llvm::SetVector<Operation *> needed(roots.begin(), roots.end());
  llvm::SmallPtrSet<Operation *, 8> whole(roots.begin(), roots.end());
  for (size_t i = 0; i < needed.size(); ++i) {
    Operation *op = needed[i];
    if (!whole.contains(op))
      continue;
    for (Region &region : op->getRegions()) {
      auto uses = SymbolTable::getSymbolUses(&region);
      if (!uses)
        continue;
      for (SymbolTable::SymbolUse use : *uses) {
        Operation *used = symbols.lookup(use.getSymbolRef().getRootReference());
        if (!isa_and_nonnull<LLVM::LLVMFuncOp, LLVM::GlobalOp>(used))
          continue;
        if (isLocal(used))
          whole.insert(used);
        needed.insert(used);
      }
    }
  }
  OwningOpRef<ModuleOp> part = ModuleOp::create(module.getLoc());
  auto builder = OpBuilder::atBlockBegin(part->getBody());
  for (Operation *op : needed) {
    if (whole.contains(op)) {
      builder.clone(*op);
      continue;
    }
    Operation *copy = builder.cloneWithoutRegions(*op);
    if (auto global = dyn_cast<LLVM::GlobalOp>(copy))
      global.removeValueAttr();
  }
  return part;
}

/// What calls the runtime, which an error of the runtime may leave; nothing else throws.
static llvm::SmallPtrSet<const llvm::Function *, 8> findThrowing(const llvm::Module &module) {
  llvm::SmallPtrSet<const llvm::Function *, 8> throwing;
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && function.getName().starts_with("dsopt_rt_")) {
      throwing.insert(&function);
      for (const llvm::User *user : function.users())
        if (auto *call = dyn_cast<llvm::CallBase>(user))
          throwing.insert(call->getFunction());
    }
  return throwing;
}

std::unique_ptr<llvm::Module> dsopt::translate(ModuleOp part, TargetAttr target, llvm::TargetMachine &machine,
                                               llvm::LLVMContext &context) {
  auto module = translateModuleToLLVMIR(part, context, "dsopt", /*disableVerification=*/true);
  if (!module) {
    part.emitError("cannot be translated to LLVM IR");
    return nullptr;
  }
  module->setTargetTriple(machine.getTargetTriple());
  module->setDataLayout(machine.createDataLayout());
  std::string features = featureText(target);
  auto throwing = findThrowing(*module);
  for (llvm::Function &function : *module) {
    if (function.isIntrinsic())
      continue;
    if (!throwing.contains(&function))
      function.setDoesNotThrow();
    else if (!function.isDeclaration())
      function.setUWTableKind(llvm::UWTableKind::Default);
    if (machine.getTargetTriple().isNVPTX() && !function.hasLocalLinkage())
      function.setName(deviceName(function.getName()));
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.getArch());
    function.addFnAttr("target-features", features);
    // Where there are 512, LLVM prefers 256.
    if (target.getVectorBits() == 512)
      function.addFnAttr("prefer-vector-width", "512");
  }
  return module;
}

void dsopt::collectRoots(ModuleOp module, SmallVectorImpl<Operation *> &functions,
                         SmallVectorImpl<Operation *> &globals, const KnownKernels *known) {
  auto isDefined = [&](LLVM::LLVMFuncOp function) {
    return !function.isExternal() || (known && known->objects.contains(known->groupOf(function.getName())));
  };
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    if (function && isDefined(function) && !isLocal(&op))
      functions.push_back(&op);
    if (isa<LLVM::GlobalOp>(op) && !isLocal(&op))
      globals.push_back(&op);
  }
}

std::unique_ptr<llvm::TargetMachine> dsopt::makeMachine(ModuleOp module, TargetAttr target,
                                                        unsigned optLevel) {
  std::string error;
  auto machine = createMachine(target, optLevel, error);
  if (!machine)
    module.emitError("cannot compile for ") << target.getTriple() << ": " << error;
  return machine;
}

LogicalResult dsopt::collectGroups(ModuleOp module, TargetAttr target, unsigned optLevel, AddData addTables,
                                   std::vector<Group> &groups, KnownKernels &known) {
  auto machine = makeMachine(module, target, optLevel);
  if (!machine)
    return failure();
  SmallVector<Operation *> functions, globals;
  collectRoots(module, functions, globals, &known);
  SymbolTable symbols(module);
  auto addGroup = [&](ArrayRef<Operation *> roots, AddData addData) {
    OwningOpRef<ModuleOp> part = extract(module, symbols, roots);
    llvm::LLVMContext context;
    auto translated = translate(*part, target, *machine, context);
    if (!translated)
      return failure();
    if (addData)
      addData(*translated);
    llvm::raw_svector_ostream os(groups.emplace_back(Group{target, {}, !addData}).bitcode);
    llvm::WriteBitcodeToFile(*translated, os);
    return success();
  };
  if ((addTables || !globals.empty()) && failed(addGroup(globals, addTables)))
    return failure();
  for (size_t from = 0, to = 0; from < functions.size(); from = to) {
    StringRef name = known.groupOf(SymbolTable::getSymbolName(functions[from]));
    while (to < functions.size() && to < from + kGroup &&
           known.groupOf(SymbolTable::getSymbolName(functions[to])) == name)
      ++to;
    if (auto object = known.objects.find(name); object != known.objects.end())
      groups.emplace_back().object = std::move(object->second);
    else if (failed(addGroup(ArrayRef(functions).slice(from, to - from), {})))
      return failure();
    groups.back().name = name;
  }
  return success();
}

LogicalResult dsopt::compileGroups(ModuleOp module, std::vector<Group> &groups, const ObjectOptions &options,
                                   ObjectBuffers &compiled) {
  // Any thread takes the next group.
  compiled = ObjectBuffers(groups.size());
  ObjectCache cache(options.cache, options.cacheBytes);
  auto fromCache = [&](size_t index, std::string &key) {
    compiled[index] = std::move(groups[index].object);
    if (compiled[index])
      return true;
    // The tables are other ones with every command line, and quickly written.
    if (!groups[index].isKept || options.cache.empty())
      return false;
    key = ObjectCache::key(groups[index].bitcode, groups[index].target, options.optLevel);
    compiled[index] = cache.find(key);
    if (compiled[index])
      cache.link(key, groups[index].name);
    return compiled[index] != nullptr;
  };
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::string error;
  auto work = [&] {
    std::string problem;
    std::unique_ptr<llvm::TargetMachine> machine;
    TargetAttr target; // of the machine
    for (size_t index; problem.empty() && (index = next++) < groups.size();) {
      std::string key;
      if (fromCache(index, key))
        continue;
      if (target != groups[index].target) {
        target = groups[index].target;
        machine = createMachine(target, options.optLevel, problem);
      }
      if (machine)
        compiled[index] = generateCode(groups[index].bitcode, *machine, options.optLevel, problem);
      if (compiled[index] && !key.empty()) {
        cache.store(key, compiled[index]->getBuffer());
        cache.link(key, groups[index].name);
      }
    }
    if (!problem.empty()) {
      std::lock_guard<std::mutex> lock(mutex);
      error = problem;
    }
  };
  workTogether(std::min<size_t>(options.threads, groups.size()), work);
  if (!error.empty())
    return module.emitError("cannot be compiled: ") << error;
  return success();
}
