//===- ProductAlgorithms.cpp - which algorithm a product takes -------------===//

#include "Kernels/CUDA/ProductAlgorithms.h"

#include "dsopt/Runtime/DeviceWorkspaces.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>
#include <array>

namespace dsopt::runtime::cuda {

/// That the library is asked for: the first ones may add up in pieces.
static constexpr int kCandidates = 32;

int64_t bytesOfElement(int64_t type) { return type == DSOPT_F64 ? 8 : dsopt_device_is_narrow(type) ? 2 : 4; }

static const char *nameOf(int64_t type) {
  return type == DSOPT_F64 ? "f64" : type == DSOPT_BF16 ? "bf16" : type == DSOPT_F16 ? "f16" : "f32";
}

static LtType typeOf(int64_t type) {
  return type == DSOPT_F64 ? kLtF64 : type == DSOPT_BF16 ? kLtBf16 : type == DSOPT_F16 ? kLtF16 : kLtF32;
}

static const char *textOfEpilogue(int64_t epilogue) {
  switch (epilogue) {
  case kLtBias:
    return " with bias";
  case kLtGeluBias:
    return " with bias and gelu";
  case kLtGeluAuxBias:
    return " with bias and gelu, whose operand is kept,";
  case kLtGeluGrad:
    return " with gelu's gradient";
  default:
    return "";
  }
}

std::string ProductShape::text() const {
  auto number = [](int64_t value) { return std::to_string(value); };
  return (batch > 1 ? number(batch) + " of " : "") + number(m) + "x" + number(n) + "x" + number(k) + " " +
         (transposeA ? "T" : "N") + (transposeB ? "T" : "N") + textOfEpilogue(epilogue) + " (" +
         (isTf32 ? "tf32" : nameOf(typeAB)) + " to " + nameOf(typeC) + ", aligned to " + number(alignmentA) +
         ", " + number(alignmentB) + " and " + number(alignmentC) + " bytes)";
}

CallObjects::CallObjects(const ProductCall &p)
    : operation(p.typeAB == DSOPT_F64 ? kLtComputeF64
                : p.isTf32            ? kLtComputeTf32
                                      : kLtComputeF32,
                p.typeAB == DSOPT_F64 ? kLtF64 : kLtF32, p.transposeB, p.transposeA),
      first(typeOf(p.typeAB), p.transposeB ? p.k : p.n, p.transposeB ? p.n : p.k, p.ldb, p.count, p.strideB),
      second(typeOf(p.typeAB), p.transposeA ? p.m : p.k, p.transposeA ? p.k : p.m, p.lda, p.count, p.strideA),
      result(typeOf(p.typeC), p.n, p.m, p.ldc, p.count, p.strideC) {
  if (p.epilogue == kLtNoEpilogue)
    return;
  operation.set(kLtEpilogue, static_cast<uint32_t>(p.epilogue));
  // Where nothing is read, addresses only say how they are aligned.
  const void *place = reinterpret_cast<const void *>(kEpilogueAlignment);
  if (p.epilogue != kLtGeluGrad)
    operation.set(kLtBiasPointer, place);
  if (p.epilogue == kLtGeluAuxBias || p.epilogue == kLtGeluGrad) {
    operation.set(kLtAuxPointer, place);
    operation.set(kLtAuxLeading, p.n);
  }
}

/// The product of a shape whose lines are as close as their alignment lets them.
static ProductCall denseCall(const ProductShape &s) {
  auto leading = [](int64_t columns, int64_t alignment, int64_t type) {
    int64_t unit = std::max<int64_t>(alignment / bytesOfElement(type), 1);
    return (columns + unit - 1) / unit * unit;
  };
  ProductCall call = {
      s.m, s.n, s.k, s.transposeA, s.transposeB, s.typeAB, s.typeC, s.isTf32, 0, 0, 0, s.batch, 0, 0, 0};
  call.lda = leading(s.transposeA ? s.m : s.k, s.alignmentA, s.typeAB);
  call.ldb = leading(s.transposeB ? s.k : s.n, s.alignmentB, s.typeAB);
  call.ldc = leading(s.n, s.alignmentC, s.typeC);
  call.strideA = call.lda * (s.transposeA ? s.k : s.m);
  call.strideB = call.ldb * (s.transposeB ? s.n : s.k);
  call.strideC = call.ldc * s.m;
  call.epilogue = s.epilogue;
  return call;
}

static uint32_t configOf(const LtAlgorithm &algorithm, LtConfigAttribute attribute) {
  uint32_t value = 0;
  size_t written = 0, bytes = attribute >= kLtInnerShape ? 2 : 4;
  DSOPT_CUBLASLT_CALL(cublasLtMatmulAlgoConfigGetAttribute, &algorithm, attribute, &value, bytes, &written);
  return value;
}

static std::string textOf(const LtAlgorithm &algorithm) {
  static constexpr std::pair<LtConfigAttribute, const char *> kParts[] = {{kLtTile, "tile"},
                                                                          {kLtStages, "stages"},
                                                                          {kLtSwizzle, "swizzle"},
                                                                          {kLtCustomOption, "custom option"},
                                                                          {kLtInnerShape, "inner shape"},
                                                                          {kLtClusterShape, "cluster shape"}};
  std::string text;
  for (auto [attribute, name] : kParts)
    text +=
        (text.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(configOf(algorithm, attribute));
  return "algorithm " + std::to_string(configOf(algorithm, kLtAlgorithmId)) + " (" + text + ")";
}

/// Whether it multiplies as the types say, or by tf32 where that is allowed: an environment variable can make
/// the library take fp32 for less.
static bool isExact(const LtAlgorithm &algorithm, const ProductShape &shape) {
  uint64_t flags = 0;
  size_t written = 0;
  if (shape.typeAB != DSOPT_F32)
    return true;
  DSOPT_CUBLASLT_CALL(cublasLtMatmulAlgoCapGetAttribute, &algorithm, kLtNumericalFlags, &flags, sizeof(flags),
                      &written);
  return (flags & kLtOperationMask) == kLtOperationFma ||
         (shape.isTf32 && (flags & kLtInputMask) == kLtInputTf32);
}

const Algorithm &ProductAlgorithms::choose(const ProductShape &shape) {
  if (auto found = chosen.find(shape); found != chosen.end())
    return found->second;
  const CublasLt &library = CublasLt::get();
  auto fail = [&](const std::string &why) {
    throw Error(StatusFailure, "cuBLASLt " + library.version + " has no algorithm for the product " +
                                   shape.text() + " on sm_" + std::to_string(architecture) + ": " + why);
  };
  // The library counts both in 32 bits.
  for (int64_t extent : {shape.m, shape.n, shape.k, shape.batch})
    if (extent > INT32_MAX)
      fail("an extent of " + std::to_string(extent) + ", expected at most " + std::to_string(INT32_MAX));
  CallObjects call(denseCall(shape));
  Preference preference;
  preference.set(kLtMaxWorkspaceBytes, uint64_t(0));
  preference.set(kLtReductionSchemes, uint32_t(0));
  preference.set(kLtMinAlignmentA, static_cast<uint32_t>(shape.alignmentB));
  preference.set(kLtMinAlignmentB, static_cast<uint32_t>(shape.alignmentA));
  preference.set(kLtMinAlignmentC, static_cast<uint32_t>(shape.alignmentC));
  preference.set(kLtMinAlignmentD, static_cast<uint32_t>(shape.alignmentC));
  std::array<LtCandidate, kCandidates> candidates = {};
  int count = 0;
  LtStatus status =
      library.cublasLtMatmulAlgoGetHeuristic(handle, call.operation, call.first, call.second, call.result,
                                             call.result, preference, kCandidates, candidates.data(), &count);
  if (status != kLtSuccess)
    fail(library.describe(status));
  for (int i = 0; i < count; ++i) {
    const LtAlgorithm &algorithm = candidates[i].algorithm;
    if (candidates[i].state == kLtSuccess && candidates[i].workspaceBytes == 0 &&
        configOf(algorithm, kLtSplitK) <= 1 && configOf(algorithm, kLtReductionScheme) == 0 &&
        isExact(algorithm, shape))
      return chosen.emplace(shape, Algorithm{algorithm, textOf(algorithm)}).first->second;
  }
  fail("none of its " + std::to_string(count) +
       " candidates adds up in one piece, in the precision asked for and without a workspace");
  __builtin_unreachable();
}

void ProductAlgorithms::check(const ProductShape &shape, const Algorithm &algorithm,
                              const CallObjects &call) const {
  const CublasLt &library = CublasLt::get();
  LtCandidate result = {};
  LtStatus status = library.cublasLtMatmulAlgoCheck(handle, call.operation, call.first, call.second,
                                                    call.result, call.result, &algorithm.configured, &result);
  if (status == kLtSuccess)
    status = result.state;
  if (status != kLtSuccess || result.workspaceBytes)
    throw Error(StatusFailure,
                "cuBLASLt " + library.version + " refuses " + algorithm.text + " for the product " +
                    shape.text() + " on sm_" + std::to_string(architecture) + ": " +
                    (status != kLtSuccess ? library.describe(status)
                                          : "it needs " + std::to_string(result.workspaceBytes) +
                                                " bytes of workspace, expected none"));
}

} // namespace dsopt::runtime::cuda
