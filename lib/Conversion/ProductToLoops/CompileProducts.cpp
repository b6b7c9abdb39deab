//===- CompileProducts.cpp - kernels for the products of segments ---------===//

#include "Blocking.h"
#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/CompiledProducts.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_COMPILEPRODUCTS
#include "dsopt/Conversion/Passes.h.inc"

static MemRefType typeOfPackedB(exec::ProductAttr product, TargetAttr target) {
  return product.typeOfPackedB(packedElements(target, product.getOperands(), product.getN(), product.getK()));
}

FunctionType typeOfProductKernel(exec::ProductAttr product, TargetAttr target) {
  Builder b(product.getContext());
  MemRefType result = product.typeOfC(product.getResult());
  SmallVector<Type> types = {b.getIndexType(), b.getIndexType(), product.typeOfA(),
                             product.getPacked() ? typeOfPackedB(product, target) : product.typeOfB()};
  if (product.getAddend())
    types.push_back(product.typeOfC(b.getF32Type()));
  if (product.getBias())
    types.push_back(MemRefType::get(product.getN(), result.getElementType()));
  types.push_back(result);
  if (product.getAccumulates())
    types.push_back(MemRefType::get(1, b.getI64Type()));
  return b.getFunctionType(types, {});
}

FunctionType typeOfPackingKernel(exec::ProductAttr product, TargetAttr target) {
  Builder b(product.getContext());
  return b.getFunctionType(
      {b.getIndexType(), b.getIndexType(), product.typeOfB(), typeOfPackedB(product, target)}, {});
}

func::FuncOp createProductKernel(OpBuilder &builder, Location loc, StringRef name, exec::ProductAttr product,
                                 TargetAttr target, exec::BlockingAttr blocking) {
  auto kernel = func::FuncOp::create(builder, loc, name, typeOfProductKernel(product, target));
  kernel->setAttr(exec::kProductAttr, product);
  if (blocking)
    kernel->setAttr(exec::kBlockingAttr, blocking);
  int64_t range = Blocking(product, target, blockingOf(kernel, product, target)).range();
  kernel->setAttr(graph::kRangeAttr, builder.getDenseI64ArrayAttr(range));
  return kernel;
}

int64_t rangeOf(func::FuncOp kernel) {
  return kernel->getAttrOfType<DenseI64ArrayAttr>(graph::kRangeAttr)[0];
}

/// The key of a product's like with other extents; with `turned` of the one whose result lies transposed.
static exec::GemmChoiceAttr choiceOf(exec::ProductAttr product, int64_t m, int64_t n, int64_t k,
                                     bool turned) {
  bool turnsA = product.getTransposeA(), turnsB = product.getTransposeB();
  return exec::GemmChoiceAttr::get(product.getContext(), product.getOperands(), m, n, k,
                                   turned ? !turnsB : turnsA, turned ? !turnsA : turnsB, product.count(),
                                   exec::BlockingAttr());
}

exec::GemmChoiceAttr choiceOf(exec::ProductAttr product) {
  return choiceOf(product, product.getM(), product.getN(), product.getK(), /*turned=*/false);
}

namespace {
/// The module's table, by products. What no product takes of it is no part of the program.
class GemmTable {
public:
  explicit GemmTable(exec::GemmTableAttr table) : table(table) {
    if (table)
      for (auto choice : table.getChoices().getAsRange<exec::GemmChoiceAttr>())
        choices[choice.withoutBlocking()] = choice;
  }

  /// Null: the model decides. `whole` is as ProductCallOpInterface has it.
  exec::GemmChoiceAttr find(exec::ProductAttr product, ArrayRef<int64_t> whole) {
    int64_t m = product.getM(), n = product.getN(), k = product.getK();
    // Parts are the library's where the whole is, or both have other bits; blocks change none.
    if (!whole.empty())
      if (auto choice = take(product, whole[0], whole[1], whole[2], /*turned=*/false);
          choice && !choice.getBlocking())
        return choice;
    if (auto choice = take(product, m, n, k, /*turned=*/false);
        choice && (choice.getBlocking() || whole.empty()))
      return choice;
    // A layout may have the transposed result.
    auto choice = whole.empty() ? take(product, n, m, k, /*turned=*/true) : nullptr;
    return choice && !choice.getBlocking() ? choice : nullptr;
  }

  /// The choices that were found.
  ArrayAttr takenChoices() const {
    auto all = table.getChoices().getAsRange<exec::GemmChoiceAttr>();
    auto some =
        llvm::make_filter_range(all, [&](exec::GemmChoiceAttr choice) { return taken.contains(choice); });
    return ArrayAttr::get(table.getContext(), SmallVector<Attribute>(some.begin(), some.end()));
  }

private:
  exec::GemmChoiceAttr take(exec::ProductAttr product, int64_t m, int64_t n, int64_t k, bool turned) {
    auto choice = choices.lookup(choiceOf(product, m, n, k, turned));
    if (choice)
      taken.insert(choice);
    return choice;
  }

  exec::GemmTableAttr table;
  DenseMap<exec::GemmChoiceAttr, exec::GemmChoiceAttr> choices;
  DenseSet<exec::GemmChoiceAttr> taken;
};

/// The module's kernels of products, one for each that differs.
class ProductKernels {
public:
  ProductKernels(ModuleOp kernels, TargetAttr target, GemmTable &table)
      : kernels(kernels), target(target), table(table), symbols(kernels) {}

  /// Null where the library computes it.
  FailureOr<exec::ProductKernelAttr> get(Operation *call, exec::ProductAttr product,
                                         ArrayRef<int64_t> whole) {
    if (!product || !isCompiled(product, target))
      return exec::ProductKernelAttr();
    exec::GemmChoiceAttr choice = table.find(product, whole);
    if (choice && !choice.getBlocking()) {
      if (!product.getBias())
        return exec::ProductKernelAttr();
      call->emitWarning() << exec::kGemmTableAttr << " leaves " << choice
                          << " to the library, which adds no bias: it has a kernel here";
      choice = nullptr;
    }
    exec::ProductKernelAttr &known = references[product];
    if (known)
      return known;
    exec::BlockingAttr blocking = choice ? choice.getBlocking() : exec::BlockingAttr();
    if (std::string problem = choice ? problemOf(product, target, blocking) : ""; !problem.empty())
      return call->emitError() << exec::kGemmTableAttr << " has " << choice << " for " << product << ": "
                               << problem;
    OpBuilder builder(product.getContext());
    func::FuncOp kernel =
        createProductKernel(builder, kernels.getLoc(), "product" + std::to_string(references.size() - 1),
                            product, target, blocking);
    kernel.setNested();
    auto symbol = FlatSymbolRefAttr::get(symbols.insert(kernel));
    return known = exec::ProductKernelAttr::get(
               product.getContext(), SymbolRefAttr::get(kernels.getSymNameAttr(), symbol), rangeOf(kernel));
  }

private:
  ModuleOp kernels;
  TargetAttr target;
  GemmTable &table;
  SymbolTable symbols;
  DenseMap<exec::ProductAttr, exec::ProductKernelAttr> references;
};

struct CompileProducts : impl::CompileProductsBase<CompileProducts> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<TargetAttr> target = getTarget(module);
    if (failed(target))
      return signalPassFailure();
    if (target->getKind() != TargetKind::CPU)
      return;
    auto nested = module.lookupSymbol<ModuleOp>(exec::kKernelsModule);
    if (!nested) {
      module.emitError("has no module @") << exec::kKernelsModule << ", expected nest-kernels before";
      return signalPassFailure();
    }
    auto said = module->getAttrOfType<exec::GemmTableAttr>(exec::kGemmTableAttr);
    if (said && (said.getArch() != target->getArch() || said.getVectorBits() != target->getVectorBits())) {
      module.emitError() << exec::kGemmTableAttr << " is for " << said.getArch() << " with vectors of "
                         << said.getVectorBits() << " bits, expected one for " << target->getArch() << " and "
                         << target->getVectorBits();
      return signalPassFailure();
    }
    GemmTable table(said);
    ProductKernels kernels(nested, *target, table);
    SmallVector<exec::ProductAttr> products;
    SmallVector<exec::ProductKernelAttr> found;
    WalkResult walked = module.walk([&](exec::ProductCallOpInterface call) {
      products.clear();
      if (failed(call.collectProducts(products)))
        return WalkResult::interrupt();
      found.clear();
      for (exec::ProductAttr product : products) {
        FailureOr<exec::ProductKernelAttr> kernel = kernels.get(call, product, call.getWholeProduct());
        if (failed(kernel))
          return WalkResult::interrupt();
        found.push_back(*kernel);
      }
      call.setProductKernels(found);
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    if (said)
      module->setAttr(exec::kGemmTableAttr,
                      exec::GemmTableAttr::get(&getContext(), said.getArch(), said.getVectorBits(),
                                               table.takenChoices()));
  }
};
} // namespace
} // namespace dsopt
