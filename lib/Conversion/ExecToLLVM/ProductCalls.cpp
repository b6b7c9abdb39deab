//===- ProductCalls.cpp - products and sums of gradients as calls ---------===//

#include "RuntimeCalls.h"
#include "dsopt/Conversion/RoutineSizes.h"
#include "dsopt/Dialect/Exec/Epilogue.h"
#include "dsopt/Interfaces/Target.h"
#include "dsopt/Runtime/ABI.h"

#include <cstring>

using namespace mlir;
using namespace dsopt;

namespace {
/// With its place in a batch.
struct Matrix : ProductMatrix {
  SmallVector<int64_t> batchStrides;
};
} // namespace

static FailureOr<Matrix> matrixOf(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return failure();
  auto matrix = productMatrix(type.getShape(), strides);
  if (failed(matrix))
    return failure();
  return Matrix{*matrix, SmallVector<int64_t>(ArrayRef(strides).drop_back(2))};
}

namespace {
/// A product as the library takes it: the fields of dsopt_gemm, and the operands in its order.
struct Product {
  SmallVector<int64_t> fields;
  Value lhs, rhs;
  int64_t m, k, leading; ///< rows of the result, and how far apart they are
};
} // namespace

/// Of exec.gemm or exec.gemm_epilogue; with `writesRows` the result may not be a transposed one.
template <typename Op> static FailureOr<Product> productOf(Op gemm, bool writesRows) {
  auto typeOf = [&](Value memref) -> FailureOr<int64_t> {
    if (cast<MemRefType>(memref.getType()).getElementType().isF64())
      return int64_t(DSOPT_F64);
    return elementTypeOf(gemm, memref);
  };
  auto typeA = typeOf(gemm.getLhs()), typeB = typeOf(gemm.getRhs()), typeC = typeOf(gemm.getResult());
  if (failed(typeA) || failed(typeB) || failed(typeC))
    return failure();
  bool isNarrow = *typeA == DSOPT_BF16 || *typeA == DSOPT_F16;
  if (*typeA != *typeB || (*typeC != *typeA && !(isNarrow && *typeC == DSOPT_F32)))
    return gemm.emitOpError("multiplies ")
           << gemm.getLhs().getType() << " by " << gemm.getRhs().getType() << " to "
           << gemm.getResult().getType() << ", expected f32, f64, or bf16 or f16 to itself or f32";
  auto type = cast<MemRefType>(gemm.getResult().getType());
  int64_t rank = type.getRank(), m = type.getDimSize(rank - 2), n = type.getDimSize(rank - 1);
  int64_t k = dim(gemm.getLhs(), rank - (gemm.getTransposeA() ? 2 : 1));
  Value operands[] = {gemm.getLhs(), gemm.getRhs(), gemm.getResult()};
  Matrix matrices[3];
  for (auto [value, matrix] : llvm::zip_equal(operands, matrices)) {
    auto found = matrixOf(cast<MemRefType>(value.getType()));
    if (failed(found))
      return gemm.emitOpError("has a matrix of type ")
             << value.getType() << ", expected contiguous rows or columns";
    matrix = *found;
  }
  bool transposeA = gemm.getTransposeA() != matrices[0].transposed,
       transposeB = gemm.getTransposeB() != matrices[1].transposed;
  if (writesRows && matrices[2].transposed)
    return gemm.emitOpError("writes columns of ")
           << type << ", expected a part or one with an epilogue to write rows";
  // The library writes rows: a transposed result is the product of the transposed operands.
  if (matrices[2].transposed) {
    std::swap(operands[0], operands[1]);
    std::swap(matrices[0], matrices[1]);
    std::swap(m, n);
    bool left = transposeA;
    transposeA = !transposeB;
    transposeB = !left;
  }
  SmallVector<int64_t> extents(type.getShape().drop_back(2));
  // Neighbouring leading dimensions that are one in all three matrices.
  for (size_t d = extents.size(); d-- > 1;) {
    auto merges = [&, d](const Matrix &matrix) {
      return matrix.batchStrides[d - 1] == matrix.batchStrides[d] * extents[d];
    };
    if (extents[d - 1] != 1 && extents[d] != 1 && !llvm::all_of(matrices, merges))
      continue;
    size_t gone = extents[d] == 1 ? d : d - 1;
    extents[d - 1] *= extents[d];
    extents.erase(extents.begin() + d);
    for (Matrix &matrix : matrices)
      matrix.batchStrides.erase(matrix.batchStrides.begin() + gone);
  }
  if (extents.size() > DSOPT_BATCH_RANK)
    return gemm.emitOpError("has ") << extents.size()
                                    << " leading dimensions that are no one dimension, expected at most "
                                    << int(DSOPT_BATCH_RANK);
  Product product = {{m, n, k, transposeA, transposeB, matrices[0].leading, matrices[1].leading,
                      matrices[2].leading, *typeA, *typeC},
                     operands[0],
                     operands[1],
                     m,
                     k,
                     matrices[2].leading};
  auto append = [&](ArrayRef<int64_t> values, int64_t fill) {
    product.fields.append(DSOPT_BATCH_RANK - values.size(), fill);
    llvm::append_range(product.fields, values);
  };
  append(extents, 1);
  for (const Matrix &matrix : matrices)
    append(matrix.batchStrides, 0);
  return product;
}

/// By the kernel that is compiled for it; `packed` is what stands for b, or null, `added` an addend or a
/// bias, or null.
template <typename Op>
static LogicalResult launchKernel(Op gemm, const Product &product, Value packed, Value added,
                                  bool accumulates, RuntimeCallBuilder &builder) {
  SmallVector<Value> pointers = {builder.pointer(product.lhs),
                                 builder.pointer(packed ? packed : product.rhs)};
  if (added)
    pointers.push_back(builder.pointer(added));
  pointers.push_back(builder.pointer(gemm.getResult()));
  if (accumulates)
    pointers.push_back(builder.accumulateFlag());
  return builder.launch(gemm, gemm.getKernel()->getKernel(), gemm.getKernel()->getRange(), /*grain=*/1,
                        pointers);
}

static LogicalResult buildGemm(exec::GemmOp gemm, RuntimeCallBuilder &builder) {
  auto whole = gemm.getWhole();
  auto product = productOf(gemm, whole.has_value());
  if (failed(product) ||
      failed(verifyWorkspace(gemm, gemm.getWorkspace(),
                             productWorkspace(product->m, product->leading, whole ? (*whole)[2] : product->k,
                                              memrefType(gemm.getResult()).getElementType(),
                                              isForDevice(gemm)))))
    return failure();
  if (gemm.getKernel())
    return launchKernel(gemm, *product, gemm.getPacked(), gemm.getAddend(), gemm.getIntoGradient(), builder);
  if (whole) {
    llvm::append_range(product->fields, *whole);
    builder.call("dsopt_rt_gemm_part",
                 {builder.descriptor("product", product->fields), builder.pointer(product->lhs),
                  builder.pointer(product->rhs), builder.pointer(gemm.getAddend()),
                  builder.pointer(gemm.getResult()), builder.pointer(gemm.getWorkspace()),
                  builder.accumulates(gemm.getIntoGradient())});
    return success();
  }
  builder.call("dsopt_rt_gemm",
               {builder.descriptor("product", product->fields), builder.pointer(product->lhs),
                builder.pointer(product->rhs), builder.pointer(gemm.getResult()),
                builder.pointer(gemm.getWorkspace()), builder.accumulates(gemm.getIntoGradient())});
  return success();
}

static LogicalResult buildGemmEpilogue(exec::GemmEpilogueOp gemm, RuntimeCallBuilder &builder) {
  auto product = productOf(gemm, /*writesRows=*/true);
  if (failed(product))
    return failure();
  if (gemm.getKernel())
    return launchKernel(gemm, *product, gemm.getPacked(), gemm.getGiven(), /*accumulates=*/false, builder);
  if (!isForDevice(gemm))
    return gemm.emitOpError("has no kernel, expected one on a host, for products and epilogues that "
                            "compile-products compiles");
  product->fields.push_back(static_cast<int64_t>(gemm.getKind()));
  builder.call("dsopt_rt_gemm_epilogue",
               {builder.descriptor("product", product->fields), builder.pointer(product->lhs),
                builder.pointer(product->rhs), builder.pointer(gemm.getGiven()),
                builder.pointer(gemm.getPreActivation()), builder.pointer(gemm.getResult())});
  return success();
}

/// Of exec.gemm or exec.gemm_epilogue; all of its operands but `scratch` are read or written once.
template <typename Op> static CallDescription describeProduct(Op gemm, Value scratch) {
  auto result = cast<MemRefType>(gemm.getResult().getType()), lhs = cast<MemRefType>(gemm.getLhs().getType());
  int64_t rank = result.getRank(), batch = 1, m = result.getDimSize(rank - 2),
          n = result.getDimSize(rank - 1);
  for (int64_t extent : result.getShape().drop_back(2))
    batch *= extent;
  int64_t k = lhs.getDimSize(lhs.getRank() - (gemm.getTransposeA() ? 2 : 1));
  CallDescription call = {"product", "", lhs.getElementType()};
  call.products = {1, batch, m, n, k, gemm.getTransposeA(), gemm.getTransposeB()};
  call.what = (batch > 1 ? std::to_string(batch) + " of " : "") + shapeText({m, n, k}) + " " +
              (gemm.getTransposeA() ? "T" : "N") + (gemm.getTransposeB() ? "T" : "N");
  call.bytes = sumBytes(gemm->getOperands());
  // b is not read where its packed copy is.
  if (gemm.getPacked())
    call.bytes -= sumBytes(gemm.getRhs());
  if (scratch)
    call.bytes -= sumBytes(scratch);
  return call;
}

namespace {
struct GemmCall : RuntimeCallOpInterface::ExternalModel<GemmCall, exec::GemmOp> {
  LogicalResult buildCall(Operation *op, RuntimeCallBuilder &builder) const {
    return buildGemm(cast<exec::GemmOp>(op), builder);
  }
  CallDescription describeCall(Operation *op) const {
    auto gemm = cast<exec::GemmOp>(op);
    return describeProduct(gemm, gemm.getWorkspace());
  }
};
} // namespace

namespace {
/// What a kernel does beside the product.
struct Extras {
  bool addend = false, accumulates = false, bias = false, packed = false;
};
} // namespace

/// Null for what has no elements.
template <typename Op>
static FailureOr<exec::ProductAttr> describeKernel(Op gemm, bool writesRows, Extras extras) {
  auto product = productOf(gemm, writesRows);
  if (failed(product))
    return failure();
  dsopt_gemm p;
  static_assert(sizeof(p) % sizeof(int64_t) == 0, "every field takes 8 bytes");
  std::memcpy(&p, product->fields.data(), sizeof(p));
  if (p.m == 0 || p.n == 0 || p.k == 0)
    return exec::ProductAttr();
  MLIRContext *context = gemm.getContext();
  DenseI64ArrayAttr batch, stridesA, stridesB, stridesC;
  int64_t dims = llvm::count_if(p.batch, [](int64_t extent) { return extent != 1; });
  if (dims) {
    auto last = [&](const int64_t (&values)[DSOPT_BATCH_RANK]) {
      SmallVector<int64_t> kept;
      for (auto [extent, value] : llvm::zip_equal(p.batch, values))
        if (extent != 1)
          kept.push_back(value);
      return DenseI64ArrayAttr::get(context, kept);
    };
    batch = last(p.batch);
    stridesA = last(p.stride_a);
    stridesB = last(p.stride_b);
    stridesC = last(p.stride_c);
  }
  return exec::ProductAttr::get(context, p.m, p.n, p.k, getElementTypeOrSelf(gemm.getLhs().getType()),
                                getElementTypeOrSelf(gemm.getResult().getType()), p.lda, p.ldb, p.ldc,
                                p.transpose_a, p.transpose_b, extras.addend, extras.accumulates, extras.bias,
                                extras.packed, batch, stridesA, stridesB, stridesC);
}

template <typename Op> static Value packableB(Op gemm) {
  auto type = cast<MemRefType>(gemm.getResult().getType());
  auto result = matrixOf(type);
  // Of a transposed result b is the left operand.
  return type.getRank() == 2 && succeeded(result) && !result->transposed ? gemm.getRhs() : Value();
}

namespace {
struct GemmProducts : exec::ProductCallOpInterface::ExternalModel<GemmProducts, exec::GemmOp> {
  LogicalResult collectProducts(Operation *op, SmallVectorImpl<exec::ProductAttr> &products) const {
    auto gemm = cast<exec::GemmOp>(op);
    auto product = describeKernel(
        gemm, gemm.getWhole().has_value(),
        {gemm.getAddend() != nullptr, gemm.getIntoGradient(), /*bias=*/false, gemm.getPacked() != nullptr});
    if (succeeded(product))
      products.push_back(*product);
    return product;
  }
  ArrayRef<int64_t> getWholeProduct(Operation *op) const {
    return cast<exec::GemmOp>(op).getWhole().value_or(ArrayRef<int64_t>());
  }
  void setProductKernels(Operation *op, ArrayRef<exec::ProductKernelAttr> kernels) const {
    if (kernels.front())
      cast<exec::GemmOp>(op).setKernelAttr(kernels.front());
  }
  Value getPackableB(Operation *op) const { return packableB(cast<exec::GemmOp>(op)); }
  void setPackedB(Operation *op, Value packed) const {
    cast<exec::GemmOp>(op).getPackedMutable().assign(packed);
  }
};

struct EpilogueProducts
    : exec::ProductCallOpInterface::ExternalModel<EpilogueProducts, exec::GemmEpilogueOp> {
  LogicalResult collectProducts(Operation *op, SmallVectorImpl<exec::ProductAttr> &products) const {
    auto gemm = cast<exec::GemmEpilogueOp>(op);
    if (gemm.getKind() != Epilogue::Bias) {
      products.push_back(nullptr);
      return success();
    }
    auto product =
        describeKernel(gemm, /*writesRows=*/true,
                       {/*addend=*/false, /*accumulates=*/false, /*bias=*/true, gemm.getPacked() != nullptr});
    if (succeeded(product))
      products.push_back(*product);
    return product;
  }
  void setProductKernels(Operation *op, ArrayRef<exec::ProductKernelAttr> kernels) const {
    if (kernels.front())
      cast<exec::GemmEpilogueOp>(op).setKernelAttr(kernels.front());
  }
  Value getPackableB(Operation *op) const { return packableB(cast<exec::GemmEpilogueOp>(op)); }
  void setPackedB(Operation *op, Value packed) const {
    cast<exec::GemmEpilogueOp>(op).getPackedMutable().assign(packed);
  }
};

struct GemmEpilogueCall : RuntimeCallOpInterface::ExternalModel<GemmEpilogueCall, exec::GemmEpilogueOp> {
  LogicalResult buildCall(Operation *op, RuntimeCallBuilder &builder) const {
    return buildGemmEpilogue(cast<exec::GemmEpilogueOp>(op), builder);
  }
  CallDescription describeCall(Operation *op) const {
    auto gemm = cast<exec::GemmEpilogueOp>(op);
    CallDescription call = describeProduct(gemm, /*scratch=*/Value());
    call.what += (" " + stringifyEpilogue(gemm.getKind())).str();
    return call;
  }
};

struct AccumulateCall : RuntimeCallOpInterface::ExternalModel<AccumulateCall, exec::AccumulateOp> {
  LogicalResult buildCall(Operation *op, RuntimeCallBuilder &builder) const {
    auto add = cast<exec::AccumulateOp>(op);
    if (Type type = getElementTypeOrSelf(add.getValue().getType()); !type.isF32())
      return op->emitOpError("adds ") << type << ", expected f32";
    auto type = elementTypeOf(op, add.getGradient());
    if (failed(type))
      return failure();
    builder.call("dsopt_rt_accumulate",
                 {builder.constant(elements(add.getValue())), builder.pointer(add.getValue()),
                  builder.pointer(add.getGradient()), builder.constant(*type), builder.accumulates(true)});
    return success();
  }
  CallDescription describeCall(Operation *op) const {
    return describeByResult(op, cast<exec::AccumulateOp>(op).getGradient());
  }
};
} // namespace

void dsopt::registerProductCalls(MLIRContext *context) {
  exec::GemmOp::attachInterface<GemmCall, GemmProducts>(*context);
  exec::GemmEpilogueOp::attachInterface<GemmEpilogueCall, EpilogueProducts>(*context);
  exec::AccumulateOp::attachInterface<AccumulateCall>(*context);
}
