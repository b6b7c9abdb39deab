//===- ExecProducts.cpp - what kernels of products are compiled for -------===//

#include "dsopt/Dialect/Exec/Epilogue.h"

using namespace mlir;
using namespace dsopt::exec;

#include "dsopt/Dialect/Exec/ProductCallOpInterface.cpp.inc"

LogicalResult LinearNllOp::verify() {
  if (ArrayAttr kernels = getKernelsAttr();
      kernels && (kernels.size() != 6 || !llvm::all_of(kernels, llvm::IsaPred<UnitAttr, ProductKernelAttr>)))
    return emitOpError("has kernels ") << kernels << ", expected six, each a #exec.product_kernel or unit";
  return success();
}

LogicalResult dsopt::exec::verifyPackedB(Operation *product, Value packed, Value b) {
  auto type = cast<MemRefType>(packed.getType()), of = cast<MemRefType>(b.getType());
  if (type.getRank() != 1 || of.getRank() != 2 || type.getElementType() != of.getElementType())
    return product->emitOpError("has a packed b of type ")
           << type << " for one of " << of << ", expected a row of its elements for a matrix";
  return success();
}

LogicalResult ProductAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t m, int64_t n,
                                  int64_t k, Type operands, Type result, int64_t lda, int64_t ldb,
                                  int64_t ldc, bool transposeA, bool transposeB, bool addend,
                                  bool accumulates, bool bias, bool packed, DenseI64ArrayAttr batch,
                                  DenseI64ArrayAttr stridesA, DenseI64ArrayAttr stridesB,
                                  DenseI64ArrayAttr stridesC) {
  if (m < 1 || n < 1 || k < 1)
    return emitError() << "product is of " << m << "x" << n << "x" << k << ", expected 1 or more each";
  if (bias && (addend || accumulates))
    return emitError() << "product adds a bias and " << (addend ? "another matrix" : "to its result")
                       << ", expected one of them";
  if (packed && batch)
    return emitError() << "product has a packed b and a batch of " << batch.size()
                       << " dimensions, expected none";
  std::pair<int64_t, int64_t> lines[] = {{lda, transposeA ? m : k}, {ldb, transposeB ? k : n}, {ldc, n}};
  for (auto [leading, elements] : lines)
    if (leading < elements)
      return emitError() << "product has lines of " << elements << " elements that begin " << leading
                         << " apart, expected as many or more";
  int64_t rank = batch ? batch.size() : 0;
  for (DenseI64ArrayAttr strides : {stridesA, stridesB, stridesC})
    if (int64_t given = strides ? strides.size() : 0; given != rank)
      return emitError() << "product has a batch of " << rank << " dimensions and " << given
                         << " strides, expected as many";
  return success();
}

ProductAttr ProductAttr::withPacked(bool packed) const {
  return get(getContext(), getM(), getN(), getK(), getOperands(), getResult(), getLda(), getLdb(), getLdc(),
             getTransposeA(), getTransposeB(), getAddend(), getAccumulates(), getBias(), packed, getBatch(),
             getStridesA(), getStridesB(), getStridesC());
}

ProductAttr ProductAttr::withOperands(Type operands) const {
  return get(getContext(), getM(), getN(), getK(), operands, getResult(), getLda(), getLdb(), getLdc(),
             getTransposeA(), getTransposeB(), getAddend(), getAccumulates(), getBias(), getPacked(),
             getBatch(), getStridesA(), getStridesB(), getStridesC());
}

ProductAttr ProductAttr::transposed() const {
  return get(getContext(), getN(), getM(), getK(), getOperands(), getResult(), getLdb(), getLda(),
             /*ldc=*/getM(), !getTransposeB(), !getTransposeA(), getAddend(), getAccumulates(), getBias(),
             /*packed=*/false, getBatch(), getStridesB(), getStridesA(), getStridesC());
}

static MemRefType rowOf(int64_t elements, Type type) {
  return MemRefType::get(elements, type.isF32() ? type : IntegerType::get(type.getContext(), 16));
}

static MemRefType typeOf(ProductAttr product, std::pair<int64_t, int64_t> extents, bool transposed,
                         int64_t leading, DenseI64ArrayAttr strides, Type type) {
  if (transposed)
    std::swap(extents.first, extents.second);
  int64_t size = (extents.first - 1) * leading + extents.second;
  if (strides)
    for (auto [stride, extent] : llvm::zip_equal(strides.asArrayRef(), product.getBatch().asArrayRef()))
      size += stride * (extent - 1);
  return rowOf(size, type);
}

MemRefType ProductAttr::typeOfA() const {
  return typeOf(*this, {getM(), getK()}, getTransposeA(), getLda(), getStridesA(), getOperands());
}

MemRefType ProductAttr::typeOfB() const {
  return typeOf(*this, {getK(), getN()}, getTransposeB(), getLdb(), getStridesB(), getOperands());
}

MemRefType ProductAttr::typeOfC(Type type) const {
  return typeOf(*this, {getM(), getN()}, /*transposed=*/false, getLdc(), getStridesC(), type);
}

MemRefType ProductAttr::typeOfPackedB(int64_t elements) const { return rowOf(elements, getOperands()); }

LogicalResult BlockingAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t rows,
                                   int64_t vectors, int64_t band, ProductPacking, bool, int64_t resultAhead,
                                   bool) {
  if (rows < 1 || vectors < 1 || band < 1)
    return emitError() << "blocking has " << rows << " rows, " << vectors << " vectors and bands of " << band
                       << " blocks, expected 1 or more each";
  if (resultAhead < -1)
    return emitError() << "blocking asks for lines " << resultAhead << " blocks ahead, expected -1 or more";
  return success();
}

BlockingAttr BlockingAttr::withSwaps(bool swaps) const {
  return get(getContext(), getRows(), getVectors(), getBand(), getPacking(), getCopiesA(), getResultAhead(),
             swaps);
}

LogicalResult GemmTableAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef, int64_t,
                                    ArrayAttr choices) {
  DenseSet<Attribute> products;
  for (Attribute one : choices) {
    auto choice = dyn_cast<GemmChoiceAttr>(one);
    if (!choice)
      return emitError() << "table has " << one << ", expected #exec.gemm_choice";
    if (!products.insert(choice.withoutBlocking()).second)
      return emitError() << "table has two choices for " << choice.withoutBlocking() << ", expected one";
  }
  return success();
}

GemmChoiceAttr GemmChoiceAttr::withBlocking(BlockingAttr blocking) const {
  return get(getContext(), getOperands(), getM(), getN(), getK(), getTransposeA(), getTransposeB(),
             getBatch(), blocking);
}
