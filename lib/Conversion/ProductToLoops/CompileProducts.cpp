//===- CompileProducts.cpp - kernels for the products of segments ---------===//

#include "Blocking.h"
#include "ProductKernels.h"
#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Dialect/Graph/Symbols.h"

using namespace mlir;

namespace dsopt {
#define GEN_PASS_DEF_COMPILEPRODUCTS
#include "dsopt/Conversion/Passes.h.inc"

FunctionType typeOfProductKernel(exec::ProductAttr product) {
  // As far as the last matrix of the batch goes.
  auto buffer = [&](int64_t lines, int64_t leading, int64_t elements, DenseI64ArrayAttr strides, Type type) {
    int64_t size = (lines - 1) * leading + elements;
    if (strides)
      for (auto [stride, extent] : llvm::zip_equal(strides.asArrayRef(), product.getBatch().asArrayRef()))
        size += stride * (extent - 1);
    return MemRefType::get(size, type.isF32() ? type : IntegerType::get(type.getContext(), 16));
  };
  int64_t m = product.getM(), n = product.getN(), k = product.getK();
  bool turnsA = product.getTransposeA(), turnsB = product.getTransposeB();
  Builder b(product.getContext());
  Type result = buffer(m, product.getLdc(), n, product.getStridesC(), product.getResult());
  SmallVector<Type> types = {
      b.getIndexType(), b.getIndexType(),
      buffer(turnsA ? k : m, product.getLda(), turnsA ? m : k, product.getStridesA(), product.getOperands()),
      buffer(turnsB ? n : k, product.getLdb(), turnsB ? k : n, product.getStridesB(), product.getOperands())};
  if (product.getAddend())
    types.push_back(buffer(m, product.getLdc(), n, product.getStridesC(), b.getF32Type()));
  if (product.getBias())
    types.push_back(MemRefType::get(n, cast<MemRefType>(result).getElementType()));
  types.push_back(result);
  if (product.getAccumulates())
    types.push_back(MemRefType::get(1, b.getI64Type()));
  return b.getFunctionType(types, {});
}

namespace {
/// The module's kernels of products, one for each that differs.
class ProductKernels {
public:
  ProductKernels(ModuleOp kernels, TargetAttr target) : kernels(kernels), target(target), symbols(kernels) {}

  /// Null where the library computes it.
  exec::ProductKernelAttr get(exec::ProductAttr product) {
    if (!product || !isCompiled(product, target))
      return nullptr;
    exec::ProductKernelAttr &known = references[product];
    if (known)
      return known;
    OpBuilder builder(product.getContext());
    auto kernel =
        func::FuncOp::create(builder, kernels.getLoc(), "product" + std::to_string(references.size() - 1),
                             typeOfProductKernel(product));
    kernel.setNested();
    kernel->setAttr(exec::kProductAttr, product);
    int64_t range = chooseBlocking(product, target).range(product);
    kernel->setAttr(graph::kRangeAttr, builder.getDenseI64ArrayAttr(range));
    auto symbol = FlatSymbolRefAttr::get(symbols.insert(kernel));
    return known = exec::ProductKernelAttr::get(product.getContext(),
                                                SymbolRefAttr::get(kernels.getSymNameAttr(), symbol), range);
  }

private:
  ModuleOp kernels;
  TargetAttr target;
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
    ProductKernels kernels(nested, *target);
    SmallVector<exec::ProductAttr> products;
    WalkResult walked = module.walk([&](exec::ProductCallOpInterface call) {
      products.clear();
      if (failed(call.collectProducts(products)))
        return WalkResult::interrupt();
      call.setProductKernels(
          llvm::map_to_vector(products, [&](exec::ProductAttr product) { return kernels.get(product); }));
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
} // namespace dsopt
