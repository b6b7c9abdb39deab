//===- SegmentsToLLVM.cpp - segments to calls of the runtime --------------===//
//
// A segment is straight-line code: its buffers are loaded from the array it is
// given, scratch is pointer arithmetic, every operation one call of dsopt_rt_*.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Runtime/ABI.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/TypeSwitch.h"

namespace dsopt {
#define GEN_PASS_DEF_SEGMENTSTOLLVM
#include "dsopt/Conversion/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
constexpr int64_t kConstantAlignment = 64;

int64_t elements(Value memref) { return cast<MemRefType>(memref.getType()).getNumElements(); }
int64_t dim(Value memref, int64_t index) { return cast<MemRefType>(memref.getType()).getDimSize(index); }

/// Constants of 64-bit integers that describe a routine's work, one global for each content.
class Descriptors {
public:
  explicit Descriptors(SymbolTable &symbols) : symbols(symbols) {}

  LLVM::GlobalOp get(StringRef routine, ArrayRef<int64_t> fields) {
    OpBuilder builder(symbols.getOp()->getContext());
    auto value =
        DenseElementsAttr::get(RankedTensorType::get({int64_t(fields.size())}, builder.getI64Type()), fields);
    LLVM::GlobalOp &global = globals[value];
    if (!global) {
      auto type = LLVM::LLVMArrayType::get(builder.getI64Type(), fields.size());
      global = LLVM::GlobalOp::create(builder, symbols.getOp()->getLoc(), type, /*isConstant=*/true,
                                      LLVM::Linkage::External,
                                      (routine + "." + Twine(globals.size() - 1)).str(), value);
      symbols.insert(global, cast<ModuleOp>(symbols.getOp()).getBody()->begin());
    }
    return global;
  }

private:
  SymbolTable &symbols;
  DenseMap<Attribute, LLVM::GlobalOp> globals;
};

/// How the runtime's ABI spells a mode.
int64_t codeOf(ScatterMode mode) {
  switch (mode) {
  case ScatterMode::Set:
    return DSOPT_SCATTER_SET;
  case ScatterMode::Add:
    return DSOPT_SCATTER_ADD;
  case ScatterMode::Mul:
    return DSOPT_SCATTER_MUL;
  case ScatterMode::Min:
    return DSOPT_SCATTER_MIN;
  case ScatterMode::Max:
    return DSOPT_SCATTER_MAX;
  }
  llvm_unreachable("a mode that does not exist");
}

/// A matrix as the library takes it.
struct Matrix {
  bool transposed; ///< columns, not rows, are contiguous
  int64_t leading; ///< elements from one contiguous line to the next
  SmallVector<int64_t> batchStrides;
};

/// Builds the LLVM function of one segment.
class SegmentLowering {
public:
  SegmentLowering(func::FuncOp segment, SymbolTable &symbols, Descriptors &descriptors)
      : segment(segment), symbols(symbols), descriptors(descriptors), builder(segment.getContext()),
        ptr(LLVM::LLVMPointerType::get(segment.getContext())), i64(builder.getI64Type()) {}

  LogicalResult run();

private:
  LogicalResult lower(Operation &op);
  LogicalResult lowerLaunch(exec::LaunchOp launch);
  LogicalResult lowerGemm(exec::GemmOp gemm);
  LogicalResult lowerLoss(exec::LinearNllOp loss);
  template <typename Op> LogicalResult lowerCtc(Op ctc);
  template <typename Op> LogicalResult lowerAttention(Op attention);
  LogicalResult lowerScatterAdd(exec::ScatterAddOp scatter);
  void call(Location loc, StringRef name, ArrayRef<Value> arguments);

  Value pointer(Value memref) { return pointers.lookup(memref); }
  Value constant(Location loc, int64_t value) { return LLVM::ConstantOp::create(builder, loc, i64, value); }
  /// The run's accumulate flag for a gradient, else 0.
  Value accumulate(Location loc, bool intoGradient) {
    return intoGradient ? Value(function.getArgument(3)) : constant(loc, 0);
  }

  func::FuncOp segment;
  SymbolTable &symbols;
  Descriptors &descriptors;
  OpBuilder builder;
  Type ptr, i64;
  LLVM::LLVMFuncOp function;
  Value launchArguments; ///< an array on the stack that holds any launch's arguments
  DenseMap<Value, Value> pointers;
};
} // namespace

void SegmentLowering::call(Location loc, StringRef name, ArrayRef<Value> arguments) {
  auto callee = symbols.lookup<LLVM::LLVMFuncOp>(name);
  if (!callee) {
    graph::makeWay(symbols, name);
    auto types = llvm::map_to_vector(arguments, [](Value value) { return value.getType(); });
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), types);
    OpBuilder outside(builder.getContext());
    callee = LLVM::LLVMFuncOp::create(outside, UnknownLoc::get(builder.getContext()), name, type);
    symbols.insert(callee, cast<ModuleOp>(symbols.getOp()).getBody()->begin());
  }
  LLVM::CallOp::create(builder, loc, callee, arguments);
}

LogicalResult SegmentLowering::lowerLaunch(exec::LaunchOp launch) {
  Location loc = launch.getLoc();
  if (!symbols.lookup<LLVM::LLVMFuncOp>(launch.getKernel()))
    return launch.emitOpError("launches ")
           << launch.getKernelAttr() << ", expected a kernel that is lowered to the LLVM dialect";
  for (auto [index, memref] : llvm::enumerate(launch->getOperands())) {
    if (!cast<MemRefType>(memref.getType()).getLayout().isIdentity())
      return launch.emitOpError("takes a buffer of type ")
             << memref.getType() << ", expected a contiguous one";
    Value slot =
        LLVM::GEPOp::create(builder, loc, ptr, ptr, launchArguments, ArrayRef<LLVM::GEPArg>(int32_t(index)));
    LLVM::StoreOp::create(builder, loc, pointer(memref), slot);
  }
  Value kernel = LLVM::AddressOfOp::create(builder, loc, ptr, launch.getKernel());
  call(loc, "dsopt_rt_launch",
       {function.getArgument(0), kernel, constant(loc, launch.getRange()), constant(loc, launch.getGrain()),
        launchArguments});
  return success();
}

/// How the last two dimensions lie, or failure where neither is contiguous.
static FailureOr<Matrix> matrixOf(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return failure();
  int64_t rank = type.getRank(), rows = type.getDimSize(rank - 2), columns = type.getDimSize(rank - 1);
  Matrix matrix;
  matrix.batchStrides.assign(strides.begin(), strides.end() - 2);
  // A dimension of one element has any stride.
  if (strides[rank - 1] == 1 || columns == 1) {
    matrix.transposed = false;
    matrix.leading = rows == 1 ? columns : strides[rank - 2];
    if (matrix.leading >= columns && (columns > 1 || strides[rank - 1] == 1 || rows == 1))
      return matrix;
  }
  if (strides[rank - 2] == 1 || rows == 1) {
    matrix.transposed = true;
    matrix.leading = columns == 1 ? rows : strides[rank - 1];
    if (matrix.leading >= rows)
      return matrix;
  }
  return failure();
}

static FailureOr<int64_t> elementTypeOf(Operation *op, Value memref) {
  Type type = cast<MemRefType>(memref.getType()).getElementType();
  if (!type.isF32() && !type.isBF16())
    return op->emitOpError("works on ") << type << ", expected f32 or bf16";
  return int64_t(type.isBF16() ? DSOPT_BF16 : DSOPT_F32);
}

LogicalResult SegmentLowering::lowerGemm(exec::GemmOp gemm) {
  auto typeOf = [&](Value memref) -> FailureOr<int64_t> {
    if (cast<MemRefType>(memref.getType()).getElementType().isF64())
      return int64_t(DSOPT_F64);
    return elementTypeOf(gemm, memref);
  };
  auto typeA = typeOf(gemm.getLhs()), typeB = typeOf(gemm.getRhs()), typeC = typeOf(gemm.getResult());
  if (failed(typeA) || failed(typeB) || failed(typeC))
    return failure();
  if (*typeA != *typeB || (*typeA != DSOPT_BF16 && *typeC != *typeA) ||
      (*typeC == DSOPT_F64 && *typeA != *typeC))
    return gemm.emitOpError("multiplies ")
           << gemm.getLhs().getType() << " by " << gemm.getRhs().getType() << " to "
           << gemm.getResult().getType() << ", expected f32, f64, or bf16 to bf16 or f32";
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
  SmallVector<int64_t> fields{
      m,      n,     k, transposeA, transposeB, matrices[0].leading, matrices[1].leading, matrices[2].leading,
      *typeA, *typeC};
  auto append = [&](ArrayRef<int64_t> values, int64_t fill) {
    fields.append(DSOPT_BATCH_RANK - values.size(), fill);
    llvm::append_range(fields, values);
  };
  append(extents, 1);
  for (const Matrix &matrix : matrices)
    append(matrix.batchStrides, 0);
  Location loc = gemm.getLoc();
  Value descriptor = LLVM::AddressOfOp::create(builder, loc, descriptors.get("product", fields));
  call(loc, "dsopt_rt_gemm",
       {function.getArgument(0), descriptor, pointer(operands[0]), pointer(operands[1]), pointer(operands[2]),
        accumulate(loc, gemm.getIntoGradient())});
  return success();
}

/// The strides of attention's operand but that of its last dimension.
static LogicalResult rowStrides(Operation *op, Value memref, int64_t (&strides)[3]) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> found;
  int64_t offset;
  if (type.getRank() != 4 || failed(type.getStridesAndOffset(found, offset)) ||
      (found[3] != 1 && type.getDimSize(3) != 1))
    return op->emitOpError("has an operand of type ")
           << type << ", expected contiguous rows of four dimensions";
  std::copy_n(found.begin(), 3, strides);
  return success();
}

/// The strides of a contiguous mask, 0 where it broadcasts.
static void maskStrides(MemRefType type, int64_t (&strides)[4]) {
  int64_t stride = 1;
  for (int64_t dim = type.getRank(), at = 3; dim-- > 0; --at) {
    strides[at] = type.getDimSize(dim) == 1 ? 0 : stride;
    stride *= type.getDimSize(dim);
  }
}

template <typename Op> LogicalResult SegmentLowering::lowerAttention(Op attention) {
  constexpr bool isGradient = std::is_same_v<Op, exec::AttentionGradOp>;
  dsopt_attention d{};
  auto q = cast<MemRefType>(attention.getQ().getType()), v = cast<MemRefType>(attention.getV().getType());
  auto type = elementTypeOf(attention, attention.getQ());
  if (failed(type) || failed(rowStrides(attention, attention.getQ(), d.q)) ||
      failed(rowStrides(attention, attention.getK(), d.k)) ||
      failed(rowStrides(attention, attention.getV(), d.v)) ||
      failed(rowStrides(attention, attention.getResult(), d.out)))
    return failure();
  d.batch = q.getDimSize(0);
  d.heads = q.getDimSize(1);
  d.rows = q.getDimSize(2);
  d.depth = q.getDimSize(3);
  d.columns = v.getDimSize(2);
  d.width = v.getDimSize(3);
  d.type = d.mask_type = *type;
  d.causal = attention.getCausal();
  d.threads = attention.getThreads();
  d.scale = attention.getScale().convertToDouble();
  Location loc = attention.getLoc();
  Value mask = LLVM::ZeroOp::create(builder, loc, ptr);
  if (attention.getMask()) {
    auto maskType = elementTypeOf(attention, attention.getMask());
    if (failed(maskType))
      return failure();
    d.mask_type = *maskType;
    maskStrides(cast<MemRefType>(attention.getMask().getType()), d.mask);
    mask = pointer(attention.getMask());
  }
  if constexpr (isGradient)
    if (failed(rowStrides(attention, attention.getGrad(), d.grad)) ||
        failed(rowStrides(attention, attention.getQGrad(), d.q_grad)) ||
        failed(rowStrides(attention, attention.getKGrad(), d.k_grad)) ||
        failed(rowStrides(attention, attention.getVGrad(), d.v_grad)))
      return failure();
  int64_t bytes = elements(attention.getWorkspace()), needed = dsopt_attention_workspace(&d, isGradient);
  if (bytes < needed)
    return attention.emitOpError("has a workspace of ") << bytes << " bytes, expected " << needed;

  static_assert(sizeof(d) % sizeof(int64_t) == 0, "every field takes 8 bytes");
  int64_t fields[sizeof(d) / sizeof(int64_t)];
  std::memcpy(fields, &d, sizeof(d));
  SmallVector<Value> arguments{function.getArgument(0),
                               LLVM::AddressOfOp::create(builder, loc, descriptors.get("attention", fields)),
                               pointer(attention.getQ()),
                               pointer(attention.getK()),
                               pointer(attention.getV()),
                               mask,
                               pointer(attention.getResult()),
                               pointer(attention.getLse())};
  if constexpr (isGradient)
    for (Value memref :
         {attention.getGrad(), attention.getQGrad(), attention.getKGrad(), attention.getVGrad()})
      arguments.push_back(pointer(memref));
  arguments.push_back(pointer(attention.getWorkspace()));
  call(loc, isGradient ? "dsopt_rt_attention_grad" : "dsopt_rt_attention", arguments);
  return success();
}

LogicalResult SegmentLowering::lowerLoss(exec::LinearNllOp loss) {
  auto weight = cast<MemRefType>(loss.getWeight().getType());
  int64_t rows = dim(loss.getX(), 0), depth = dim(loss.getX(), 1);
  int64_t classes = weight.getDimSize(loss.getTransposeB() ? 0 : 1);
  int64_t bytes = elements(loss.getWorkspace()), needed = dsopt_linear_nll_chunk(rows, classes) * classes * 4;
  auto type = elementTypeOf(loss, loss.getX());
  if (failed(type))
    return failure();
  for (Value other : {loss.getWeight(), loss.getBias(), loss.getXGrad()})
    if (other && getElementTypeOrSelf(other.getType()) != getElementTypeOrSelf(loss.getX().getType()))
      return loss.emitOpError("works on ")
             << loss.getX().getType() << " and " << other.getType() << ", expected one element type";
  if (bytes < needed)
    return loss.emitOpError("has a workspace of ") << bytes << " bytes, expected " << needed;
  SmallVector<int64_t> gradientTypes;
  for (Value gradient : {loss.getWeightGrad(), loss.getBiasGrad()}) {
    auto found = gradient ? elementTypeOf(loss, gradient) : int64_t(DSOPT_F32);
    if (failed(found))
      return failure();
    gradientTypes.push_back(*found);
  }
  Location loc = loss.getLoc();
  Value null = LLVM::ZeroOp::create(builder, loc, ptr);
  auto optional = [&](Value memref) { return memref ? pointer(memref) : null; };
  int64_t labelBytes = cast<MemRefType>(loss.getLabels().getType()).getElementTypeBitWidth() / 8;
  Value descriptor = LLVM::AddressOfOp::create(
      builder, loc,
      descriptors.get("loss", {rows, depth, classes, loss.getTransposeB(), int64_t(loss.getIgnoreIndex()),
                               labelBytes, *type, gradientTypes[0], gradientTypes[1]}));
  call(loc, "dsopt_rt_linear_nll",
       {function.getArgument(0), descriptor, pointer(loss.getX()), pointer(loss.getWeight()),
        optional(loss.getBias()), pointer(loss.getLabels()), pointer(loss.getGrad()), pointer(loss.getLoss()),
        optional(loss.getXGrad()), optional(loss.getWeightGrad()), optional(loss.getBiasGrad()),
        pointer(loss.getWorkspace()), accumulate(loc, loss.getWeightIntoGradient()),
        accumulate(loc, loss.getBiasIntoGradient())});
  return success();
}

LogicalResult SegmentLowering::lowerScatterAdd(exec::ScatterAddOp scatter) {
  auto typeRows = elementTypeOf(scatter, scatter.getRows()),
       typeResult = elementTypeOf(scatter, scatter.getResult());
  if (failed(typeRows) || failed(typeResult))
    return failure();
  auto indices = cast<MemRefType>(scatter.getIndices().getType());
  dsopt_scatter_add d{};
  d.count = indices.getNumElements();
  d.size = dim(scatter.getResult(), 0);
  d.width = d.size ? elements(scatter.getResult()) / d.size : 0;
  d.index_bytes = indices.getElementTypeBitWidth() / 8;
  d.type_rows = *typeRows;
  d.type_result = *typeResult;
  if (elements(scatter.getRows()) != d.count * d.width)
    return scatter.emitOpError("has rows of ")
           << elements(scatter.getRows()) << " elements, expected " << d.count << " rows of " << d.width;
  int64_t bytes = scatter.getWorkspace() ? elements(scatter.getWorkspace()) : 0;
  if (int64_t needed = dsopt_scatter_add_workspace(&d); bytes < needed)
    return scatter.emitOpError("has a workspace of ") << bytes << " bytes, expected " << needed;
  Location loc = scatter.getLoc();
  Value workspace =
      scatter.getWorkspace() ? pointer(scatter.getWorkspace()) : LLVM::ZeroOp::create(builder, loc, ptr);
  Value descriptor = LLVM::AddressOfOp::create(
      builder, loc,
      descriptors.get("scatter_add", {d.count, d.width, d.size, d.index_bytes, d.type_rows, d.type_result}));
  call(loc, "dsopt_rt_scatter_add",
       {function.getArgument(0), descriptor, pointer(scatter.getRows()), pointer(scatter.getIndices()),
        pointer(scatter.getResult()), workspace, accumulate(loc, scatter.getIntoGradient())});
  return success();
}

template <typename Op> LogicalResult SegmentLowering::lowerCtc(Op ctc) {
  constexpr bool isGradient = std::is_same_v<Op, exec::CtcGradOp>;
  auto targets = cast<MemRefType>(ctc.getTargets().getType());
  dsopt_ctc d{dim(ctc.getLogs(), 0),     dim(ctc.getLogs(), 1),  dim(ctc.getLogs(), 2),
              targets.getShape().back(), targets.getRank() == 1, int64_t(ctc.getBlank()),
              ctc.getZeroInfinity()};
  int64_t bytes = elements(ctc.getWorkspace()), needed = dsopt_ctc_workspace(&d, isGradient);
  if (bytes < needed)
    return ctc.emitOpError("has a workspace of ") << bytes << " bytes, expected " << needed;
  Location loc = ctc.getLoc();
  Value descriptor =
      LLVM::AddressOfOp::create(builder, loc,
                                descriptors.get("ctc", {d.frames, d.batch, d.classes, d.targets,
                                                        d.concatenated, d.blank, d.zero_infinity}));
  SmallVector<Value> arguments{function.getArgument(0), descriptor};
  for (Value operand : ctc->getOperands())
    arguments.push_back(pointer(operand));
  call(loc, isGradient ? "dsopt_rt_ctc_grad" : "dsopt_rt_ctc", arguments);
  return success();
}

LogicalResult SegmentLowering::lower(Operation &op) {
  Location loc = op.getLoc();
  return TypeSwitch<Operation *, LogicalResult>(&op)
      .Case<exec::TempOp>([&](exec::TempOp temp) {
        pointers[temp.getResult()] =
            LLVM::GEPOp::create(builder, loc, ptr, builder.getI8Type(), function.getArgument(2),
                                ArrayRef<LLVM::GEPArg>(constant(loc, temp.getOffset())));
        return success();
      })
      .Case<exec::ViewOp>([&](exec::ViewOp view) {
        auto type = cast<MemRefType>(view.getType());
        SmallVector<int64_t> strides;
        int64_t offset;
        (void)type.getStridesAndOffset(strides, offset);
        Value source = pointer(view.getSource());
        if (offset)
          source = LLVM::GEPOp::create(
              builder, loc, ptr, builder.getI8Type(), source,
              ArrayRef<LLVM::GEPArg>(constant(loc, offset * ((type.getElementTypeBitWidth() + 7) / 8))));
        pointers[view.getResult()] = source;
        return success();
      })
      .Case<exec::LaunchOp>([&](exec::LaunchOp launch) { return lowerLaunch(launch); })
      .Case<exec::GemmOp>([&](exec::GemmOp gemm) { return lowerGemm(gemm); })
      .Case<exec::AttentionOp, exec::AttentionGradOp>(
          [&](auto attention) { return lowerAttention(attention); })
      .Case<exec::LinearNllOp>([&](exec::LinearNllOp loss) { return lowerLoss(loss); })
      .Case<exec::CtcOp, exec::CtcGradOp>([&](auto ctc) { return lowerCtc(ctc); })
      .Case<exec::ScatterOp>([&](exec::ScatterOp scatter) {
        auto data = cast<MemRefType>(scatter.getData().getType());
        auto indices = cast<MemRefType>(scatter.getIndices().getType());
        int64_t mode = codeOf(scatter.getMode());
        int64_t elementBytes = graph::elementBytes(data.getElementType());
        Value descriptor = LLVM::AddressOfOp::create(
            builder, loc,
            descriptors.get("scatter", {indices.getNumElements(), data.getDimSize(1), data.getDimSize(0),
                                        indices.getElementTypeBitWidth() / 8, elementBytes,
                                        int64_t(isa<FloatType>(data.getElementType())), mode}));
        call(loc, "dsopt_rt_scatter",
             {function.getArgument(0), descriptor, pointer(scatter.getData()), pointer(scatter.getIndices()),
              pointer(scatter.getUpdates()), pointer(scatter.getResult())});
        return success();
      })
      .Case<exec::ScatterAddOp>([&](exec::ScatterAddOp scatter) { return lowerScatterAdd(scatter); })
      .Case<exec::AccumulateOp>([&](exec::AccumulateOp add) -> LogicalResult {
        if (Type type = getElementTypeOrSelf(add.getValue().getType()); !type.isF32())
          return op.emitOpError("adds ") << type << ", expected f32";
        auto type = elementTypeOf(add, add.getGradient());
        if (failed(type))
          return failure();
        call(loc, "dsopt_rt_accumulate",
             {function.getArgument(0), constant(loc, elements(add.getValue())), pointer(add.getValue()),
              pointer(add.getGradient()), constant(loc, *type), accumulate(loc, true)});
        return success();
      })
      .Case<func::ReturnOp>([&](func::ReturnOp) {
        LLVM::ReturnOp::create(builder, loc, ValueRange());
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError("is in a segment, expected operations of the exec dialect");
      });
}

LogicalResult SegmentLowering::run() {
  if (!segment.getBody().hasOneBlock())
    return segment.emitError("has ") << segment.getBody().getBlocks().size() << " blocks, expected one";
  Location loc = segment.getLoc();
  builder.setInsertionPoint(segment);
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), {ptr, ptr, ptr, i64});
  function = LLVM::LLVMFuncOp::create(builder, loc, segment.getName(), type);
  function->setDiscardableAttrs(segment->getDiscardableAttrDictionary());

  builder.setInsertionPointToStart(function.addEntryBlock(builder));
  size_t mostArguments = 0;
  segment.walk(
      [&](exec::LaunchOp op) { mostArguments = std::max<size_t>(mostArguments, op->getNumOperands()); });
  if (mostArguments)
    launchArguments = LLVM::AllocaOp::create(builder, loc, ptr, ptr, constant(loc, mostArguments));
  for (BlockArgument argument : segment.getArguments()) {
    if (argument.use_empty())
      continue;
    Value slot = LLVM::GEPOp::create(builder, loc, ptr, ptr, function.getArgument(1),
                                     ArrayRef<LLVM::GEPArg>(int32_t(argument.getArgNumber())));
    pointers[argument] = LLVM::LoadOp::create(builder, loc, ptr, slot);
  }
  for (Operation &op : segment.getBody().front())
    if (failed(lower(op)))
      return failure();
  symbols.remove(segment);
  symbols.insert(function);
  segment.erase();
  return success();
}

/// The bytes of a constant as a dense attribute of one dimension; bools take a byte each.
static FailureOr<DenseElementsAttr> flatten(memref::GlobalOp global, MemRefType type) {
  Type element = type.getElementType();
  auto flat = RankedTensorType::get({type.getNumElements()}, element);
  Attribute value = *global.getInitialValue();
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    int64_t bytes = (type.getElementTypeBitWidth() + 7) / 8 * type.getNumElements();
    if (!blob || int64_t(blob->getData().size()) != bytes)
      return global.emitOpError("has a resource of ")
             << (blob ? blob->getData().size() : 0) << " bytes, expected " << bytes;
    if (element.isInteger(1))
      flat = RankedTensorType::get(flat.getShape(), IntegerType::get(type.getContext(), 8));
    return DenseElementsAttr::getFromRawBuffer(flat, blob->getData());
  }
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense)
    return global.emitOpError("has a value of an unknown kind, expected dense elements");
  if (!element.isInteger(1))
    return dense.isSplat() ? dense.resizeSplat(flat) : dense.reshape(flat);
  SmallVector<int8_t> bytes;
  for (bool bit : dense.getValues<bool>())
    bytes.push_back(bit);
  return DenseElementsAttr::get(
      RankedTensorType::get(flat.getShape(), IntegerType::get(type.getContext(), 8)),
      ArrayRef<int8_t>(bytes));
}

static LogicalResult lowerGlobal(memref::GlobalOp global, SymbolTable &symbols) {
  auto type = cast<MemRefType>(global.getType());
  auto value = flatten(global, type);
  if (failed(value))
    return failure();
  OpBuilder builder(global);
  auto array = LLVM::LLVMArrayType::get(value->getElementType(), type.getNumElements());
  auto lowered =
      LLVM::GlobalOp::create(builder, global.getLoc(), array, /*isConstant=*/true, LLVM::Linkage::External,
                             global.getSymName(), *value, kConstantAlignment);
  symbols.remove(global);
  global.erase();
  symbols.insert(lowered);
  return success();
}

namespace {
struct SegmentsToLLVM : dsopt::impl::SegmentsToLLVMBase<SegmentsToLLVM> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    Descriptors descriptors(symbols);
    for (auto segment : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (segment->hasAttr(exec::kSegmentAttr) &&
          failed(SegmentLowering(segment, symbols, descriptors).run()))
        return signalPassFailure();
    for (auto global : llvm::make_early_inc_range(module.getOps<memref::GlobalOp>()))
      if (global.getConstant() && global.getInitialValue() && failed(lowerGlobal(global, symbols)))
        return signalPassFailure();
  }
};
} // namespace
