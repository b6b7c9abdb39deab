//===- Products.cpp - matrix products on a device --------------------------===//

#include "Kernels/CUDA/Products.h"

#include "Kernels/CUDA/RoundSums.h"
#include "dsopt/Runtime/DeviceWorkspaces.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>

namespace dsopt::runtime::cuda {

/// The oldest architecture that multiplies bf16, as sm_80 names it.
static constexpr int kOldestArchitecture = 80;
/// What no algorithm asks more of than that places are its multiples.
static constexpr int64_t kMostAlignment = 16;
/// Matrices of one call: blocks of a grid's third extent.
static constexpr int64_t kMostMatrices = 65535;

Products::Products(Device &device, bool mayRound)
    : algorithms(handle, device.architecture()), mayRound(mayRound) {
  if (device.architecture() < kOldestArchitecture)
    throw Error(StatusFailure, device.name() + " is sm_" + std::to_string(device.architecture()) +
                                   ", expected sm_" + std::to_string(kOldestArchitecture) + " or later");
  device.load(kRoundSums);
  round = device.find(kRoundSumsName);
}

//===----------------------------------------------------------------------===//
// What a product depends on
//===----------------------------------------------------------------------===//

/// Whether sums are made in chunks of DSOPT_GEMM_CHUNK: of the whole's contraction, as on the host.
static bool hasChunks(const dsopt_gemm_part &part) {
  return dsopt_device_product_has_chunks(part.k, part.product.type_ab);
}

static bool isRoundedLater(const dsopt_gemm_part &part) {
  return hasChunks(part) && dsopt_device_is_narrow(part.product.type_c);
}

/// What a place, the lines of a matrix and its batch are all multiples of, in bytes, up to kMostAlignment.
/// Every plan puts values at multiples of kMostAlignment, so the place counts as a view's offset does: the
/// same in every layout.
static int64_t alignmentOf(const void *place, int64_t leading, const int64_t *batch, const int64_t *strides,
                           int64_t elementBytes) {
  uint64_t all = addressOf(place) | static_cast<uint64_t>(leading * elementBytes) | kMostAlignment;
  for (int d = 0; d < DSOPT_BATCH_RANK; ++d)
    if (batch[d] > 1)
      all |= static_cast<uint64_t>(strides[d] * elementBytes);
  return static_cast<int64_t>(all & -all);
}

/// With distances between lines that are the whole's. Where the whole has one line, as good as there are:
/// whatever was given leads nowhere, and must not count. Of several, a part may have one.
static dsopt_gemm normalized(const dsopt_gemm_part &part) {
  dsopt_gemm p = part.product;
  auto widen = [](int64_t &leading, int64_t lines, int64_t all, int64_t columns, int64_t type) {
    int64_t unit = kMostAlignment / bytesOfElement(type);
    if (all == 1)
      leading = (columns + unit - 1) / unit * unit;
    else if (lines == 1)
      leading = std::max(leading, columns);
  };
  if (p.transpose_a)
    widen(p.lda, p.k, part.k, p.m, p.type_ab);
  else
    widen(p.lda, p.m, part.m, p.k, p.type_ab);
  if (p.transpose_b)
    widen(p.ldb, p.n, part.n, p.k, p.type_ab);
  else
    widen(p.ldb, p.k, part.k, p.n, p.type_ab);
  widen(p.ldc, p.m, part.m, p.n, p.type_c);
  return p;
}

ProductShape Products::shapeOf(const dsopt_gemm_part &part, const void *a, const void *b, const float *addend,
                               const void *c) const {
  const dsopt_gemm &p = part.product;
  ProductShape shape = {part.m, part.n, part.k, 1, p.transpose_a, p.transpose_b, p.type_ab, p.type_c,
                        0,      0,      0,      0};
  shape.isTf32 = mayRound && p.type_ab == DSOPT_F32;
  for (int64_t extent : p.batch)
    shape.batch *= extent;
  shape.batch = std::min(shape.batch, kMostMatrices);
  int64_t size = bytesOfElement(p.type_ab);
  shape.alignmentA = alignmentOf(a, p.lda, p.batch, p.stride_a, size);
  shape.alignmentB = alignmentOf(b, p.ldb, p.batch, p.stride_b, size);
  if (!hasChunks(part)) {
    shape.alignmentC = alignmentOf(c, p.ldc, p.batch, p.stride_c, bytesOfElement(p.type_c));
    return shape;
  }
  // The sums of a part may lie elsewhere than the whole's, in lines that are as far apart: their place must
  // not count.
  shape.typeC = DSOPT_F32;
  shape.alignmentC = alignmentOf(nullptr, p.ldc, p.batch, p.stride_c, 4);
  for (const void *place : {static_cast<const void *>(addend), isRoundedLater(part) ? nullptr : c})
    if (addressOf(place) % static_cast<uint64_t>(shape.alignmentC))
      throw Error(StatusFailure, "the sums of the product " + shape.text() +
                                     " begin at an address that is no multiple of " +
                                     std::to_string(shape.alignmentC) + ", as their lines do");
  return shape;
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

namespace {
/// Leading dimensions.
struct Dimension {
  int64_t extent, a, b, c;
};

/// Those of more than one matrix, with neighbours that are one in all three operands as one; outermost first.
std::vector<Dimension> dimensionsOf(const dsopt_gemm &p) {
  std::vector<Dimension> made;
  for (int d = 0; d < DSOPT_BATCH_RANK; ++d) {
    if (p.batch[d] == 1)
      continue;
    Dimension inner = {p.batch[d], p.stride_a[d], p.stride_b[d], p.stride_c[d]};
    Dimension *outer = made.empty() ? nullptr : &made.back();
    if (outer && outer->a == inner.a * inner.extent && outer->b == inner.b * inner.extent &&
        outer->c == inner.c * inner.extent) {
      inner.extent *= outer->extent;
      made.back() = inner;
    } else {
      made.push_back(inner);
    }
  }
  return made;
}

/// Calls `body` with the offsets of each matrix of the dimensions, in elements.
template <typename Body> void forEachOffset(const std::vector<Dimension> &dimensions, const Body &body) {
  int64_t total = 1;
  for (const Dimension &one : dimensions)
    total *= one.extent;
  for (int64_t index = 0; index < total; ++index) {
    Dimension at = {};
    int64_t rest = index;
    for (size_t d = dimensions.size(); d-- > 0; rest /= dimensions[d].extent) {
      int64_t place = rest % dimensions[d].extent;
      at.a += place * dimensions[d].a;
      at.b += place * dimensions[d].b;
      at.c += place * dimensions[d].c;
    }
    body(at);
  }
}
} // namespace

void Products::multiplyPart(StreamHandle stream, const dsopt_gemm_part &given, const void *a, const void *b,
                            const float *addend, void *c, bool accumulate, void *workspace) {
  dsopt_gemm_part part = given;
  part.product = normalized(given);
  const dsopt_gemm &p = part.product;
  std::vector<Dimension> dimensions = dimensionsOf(p);
  if (p.m == 0 || p.n == 0 ||
      std::any_of(dimensions.begin(), dimensions.end(), [](auto &one) { return one.extent == 0; }))
    return;
  ProductShape shape = shapeOf(part, a, b, addend, c);
  if (p.k == 0 || (!hasChunks(part) && (p.k != part.k || addend)))
    throw Error(StatusFailure, "the product " + shape.text() + " adds up " + std::to_string(p.k) +
                                   " of its contraction's elements, expected all of them");
  if (isRoundedLater(part) && (!workspace || addressOf(workspace) % 64 != 0))
    throw Error(StatusFailure,
                "the product " + shape.text() + " rounds its sums, expected a workspace at a multiple of 64");

  // The longest dimension in one call, the others by turns.
  Dimension together = {1, 0, 0, 0};
  if (!isRoundedLater(part) && !dimensions.empty()) {
    auto longest = std::max_element(dimensions.begin(), dimensions.end(),
                                    [](auto &x, auto &y) { return x.extent < y.extent; });
    together = *longest;
    dimensions.erase(longest);
  }
  int64_t size = bytesOfElement(p.type_ab), resultSize = bytesOfElement(p.type_c);
  forEachOffset(dimensions, [&](const Dimension &at) {
    for (int64_t first = 0; first < together.extent; first += kMostMatrices) {
      ProductCall call = {p.m,       p.n,         p.k,          p.transpose_a, p.transpose_b,
                          p.type_ab, shape.typeC, shape.isTf32, p.lda,         p.ldb,
                          p.ldc,     1,           together.a,   together.b,    together.c};
      call.count = std::min(together.extent - first, kMostMatrices);
      const char *ofA = static_cast<const char *>(a) + (at.a + first * together.a) * size,
                 *ofB = static_cast<const char *>(b) + (at.b + first * together.b) * size;
      int64_t atC = at.c + first * together.c;
      char *ofC = static_cast<char *>(c) + atC * resultSize;
      const float *before = addend ? addend + atC : nullptr;
      if (isRoundedLater(part))
        roundInPieces(stream, shape, call, ofA, ofB, before, ofC, accumulate, workspace);
      else
        sumChunks(stream, shape, call, ofA, ofB, before, ofC, accumulate);
    }
  });
}

void Products::roundInPieces(StreamHandle stream, const ProductShape &shape, const ProductCall &whole,
                             const char *a, const char *b, const float *addend, char *c, bool accumulate,
                             void *workspace) {
  int64_t most = dsopt_device_product_rows(whole.ldc), line = whole.transposeA ? 1 : whole.lda;
  for (int64_t row = 0; row < whole.m; row += most) {
    ProductCall call = whole;
    call.m = std::min(most, whole.m - row);
    sumChunks(stream, shape, call, a + row * line * bytesOfElement(call.typeAB), b,
              addend ? addend + row * call.ldc : nullptr, workspace, false);
    launch(stream, round, call.m, kRoundSumsThreads, 0, static_cast<void *>(c + row * call.ldc * 2),
           workspace, call.n, call.ldc, static_cast<int64_t>(accumulate),
           static_cast<int64_t>(whole.typeAB == DSOPT_F16));
  }
}

void Products::sumChunks(StreamHandle stream, const ProductShape &shape, ProductCall call, const char *a,
                         const char *b, const float *addend, void *c, bool accumulate) {
  int64_t total = call.k, size = bytesOfElement(call.typeAB);
  int64_t most = dsopt_device_product_has_chunks(shape.k, call.typeAB) ? DSOPT_GEMM_CHUNK : total;
  int64_t nextA = (call.transposeA ? call.lda : 1) * size, nextB = (call.transposeB ? 1 : call.ldb) * size;
  for (int64_t begin = 0; begin < total; begin += most) {
    call.k = std::min(most, total - begin);
    const void *before = begin == 0 && addend ? addend : c;
    run(stream, shape, call, a + begin * nextA, b + begin * nextB, before, c, begin || addend || accumulate);
  }
}

Products::Prepared &Products::prepare(const ProductShape &shape, const ProductCall &call) {
  auto found = prepared.find({shape, call});
  if (found == prepared.end()) {
    const Algorithm &algorithm = algorithms.choose(shape);
    CallObjects objects(call);
    algorithms.check(shape, algorithm, objects);
    found = prepared.emplace(std::pair(shape, call), Prepared{std::move(objects), algorithm}).first;
  }
  return found->second;
}

void Products::multiplyEpilogue(StreamHandle stream, const dsopt_gemm_epilogue &product, const void *a,
                                const void *b, const void *given, void *kept, void *c) {
  const dsopt_gemm_part part = {product.product, product.product.m, product.product.n, product.product.k};
  const dsopt_gemm p = normalized(part);
  if (p.m == 0 || p.n == 0)
    return;
  ProductShape shape = shapeOf({p, p.m, p.n, p.k}, a, b, nullptr, c);
  bool isGradient = product.kind == DSOPT_EPILOGUE_GELU_GRAD;
  shape.epilogue = product.kind == DSOPT_EPILOGUE_BIAS ? kLtBias
                   : isGradient                        ? kLtGeluGrad
                   : kept                              ? kLtGeluAuxBias
                                                       : kLtGeluBias;
  if (p.k == 0 || shape.batch != 1 || hasChunks(part))
    throw Error(StatusFailure, "the product " + shape.text() +
                                   " has an epilogue, expected one of two matrices in one piece");
  for (const void *place : {given, static_cast<const void *>(kept)})
    if (addressOf(place) % kEpilogueAlignment)
      throw Error(StatusFailure,
                  "the product " + shape.text() + " has a bias or an activation's operand at " +
                      "an address that is no multiple of " + std::to_string(kEpilogueAlignment));
  ProductCall call = {p.m,
                      p.n,
                      p.k,
                      p.transpose_a,
                      p.transpose_b,
                      p.type_ab,
                      shape.typeC,
                      shape.isTf32,
                      p.lda,
                      p.ldb,
                      p.ldc,
                      1,
                      0,
                      0,
                      0,
                      shape.epilogue};
  const Operation &operation = prepare(shape, call).objects.operation;
  if (!isGradient)
    operation.set(kLtBiasPointer, given);
  if (isGradient || kept)
    operation.set(kLtAuxPointer, isGradient ? given : static_cast<const void *>(kept));
  run(stream, shape, call, a, b, c, c, false);
}

void Products::run(StreamHandle stream, const ProductShape &shape, const ProductCall &call, const void *a,
                   const void *b, const void *addend, void *c, bool adds) {
  const auto &[objects, algorithm] = prepare(shape, call);
  called = &algorithm;
  float single[] = {1, adds ? 1.0f : 0.0f};
  double doubled[] = {1, adds ? 1.0 : 0.0};
  const void *alpha = single, *beta = single + 1;
  if (call.typeAB == DSOPT_F64)
    alpha = doubled, beta = doubled + 1;
  const CublasLt &library = CublasLt::get();
  LtStatus status = library.cublasLtMatmul(handle, objects.operation, alpha, b, objects.first, a,
                                           objects.second, beta, addend, objects.result, c, objects.result,
                                           &algorithm.configured, nullptr, 0, stream);
  if (status != kLtSuccess)
    throw Failure("the product " + shape.text() + " with " + algorithm.text + " of " + this->library() +
                  ": " + library.describe(status));
}

} // namespace dsopt::runtime::cuda
