//===- Matmul.cpp - a product in a stream ---------------------------------===//

#include "Driver/LibraryWork.h"
#include "Objects.h"

using namespace softdevice;

static Region regionOf(const void *place, const softLayout &layout, bool isRead, bool isWritten) {
  uint64_t bytes = bytesOfType(layout.type);
  return {reinterpret_cast<CUdeviceptr>(place), layout.rows * bytes,   layout.columns, layout.leading * bytes,
          static_cast<uint64_t>(layout.count),  layout.stride * bytes, isRead,         isWritten};
}

static double valueOf(const void *place, int type) {
  return type == CUDA_R_64F ? *static_cast<const double *>(place) : *static_cast<const float *>(place);
}

extern "C" cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                         const void *alpha, const void *a, cublasLtMatrixLayout_t layoutA,
                                         const void *b, cublasLtMatrixLayout_t layoutB, const void *beta,
                                         const void *c, cublasLtMatrixLayout_t layoutC, void *d,
                                         cublasLtMatrixLayout_t layoutD, const cublasLtMatmulAlgo_t *algo,
                                         void *workspace, size_t workspaceBytes, CUstream stream) {
  return callProducts([&](Objects &objects) {
    Product p = productOf(objects, operation, layoutA, layoutB, layoutC, layoutD);
    Configured algorithm = configuredOf(algo);
    checkAlgorithm(*known(objects.handles, handle, "handle"), p, algorithm);
    expect(alpha && beta && a && b && d, CUBLAS_STATUS_INVALID_VALUE, "a place of the product is null");
    double factor = valueOf(alpha, p.operation->scaleType), before = valueOf(beta, p.operation->scaleType);
    expect(before == 0 || c, CUBLAS_STATUS_INVALID_VALUE, "there is nothing to add to");
    auto checkPlace = [&](const char *name, const void *place, const softLayout &layout) {
      uint64_t unit = std::max<uint64_t>(algorithm.alignment, bytesOfType(layout.type));
      expect(reinterpret_cast<uint64_t>(place) % unit == 0, CUBLAS_STATUS_INVALID_VALUE,
             std::string(name) + " begins at an address that is no multiple of the " + std::to_string(unit) +
                 " bytes of algorithm " + std::to_string(algorithm.id));
    };
    checkPlace("A", a, *p.a);
    checkPlace("B", b, *p.b);
    checkPlace("C", before == 0 ? d : c, *p.c);
    checkPlace("D", d, *p.d);
    const softOperation &op = *p.operation;
    bool hasAux = writesAux(op) || readsAux(op);
    if (addsBias(op))
      checkPlace("the bias", op.bias, *p.d);
    if (hasAux)
      checkPlace("the auxiliary matrix", op.aux, *p.d);
    expect(workspaceBytes >= algorithm.workspaceBytes && (workspace || !algorithm.workspaceBytes),
           CUBLAS_STATUS_INVALID_VALUE,
           "a workspace of " + std::to_string(workspaceBytes) + " bytes, expected at least " +
               std::to_string(algorithm.workspaceBytes));

    bool isInPlace = before != 0 && c == d;
    std::vector<Region> regions = {regionOf(a, *p.a, true, false), regionOf(b, *p.b, true, false),
                                   regionOf(d, *p.d, isInPlace, true)};
    size_t atC = 2, atBias = 0, atAux = 0;
    auto add = [&](const Region &region) {
      regions.push_back(region);
      return regions.size() - 1;
    };
    if (before != 0 && !isInPlace)
      atC = add(regionOf(c, *p.c, true, false));
    softLayout bias = {p.d->type, p.d->rows, 1, static_cast<int64_t>(p.d->rows)},
               aux = {p.d->type, p.d->rows, p.d->columns, op.auxLeading};
    if (addsBias(op))
      atBias = add(regionOf(op.bias, bias, true, false));
    if (hasAux)
      atAux = add(regionOf(op.aux, aux, readsAux(op), writesAux(op)));
    SumShape shape = {p.m,
                      p.n,
                      p.k,
                      p.operation->transposeA != 0,
                      p.operation->transposeB != 0,
                      p.a->leading,
                      p.b->leading,
                      p.c->leading,
                      p.d->leading,
                      p.a->type,
                      p.d->type,
                      algorithm.group,
                      isShortened(algorithm),
                      {op.epilogue, p.d->type, op.auxLeading}};
    auto work = [=](const std::vector<char *> &places) {
      for (uint64_t matrix = 0; matrix < regions[0].count; ++matrix) {
        auto at = [&](size_t region) { return places[region] + matrix * regions[region].stride; };
        multiply(shape, factor, at(0), at(1), before, at(atC), at(2),
                 {atBias ? at(atBias) : nullptr, atAux ? at(atAux) : nullptr});
      }
    };
    std::string what = "a product of " + std::to_string(p.m) + "x" + std::to_string(p.n) + "x" +
                       std::to_string(p.k) + " (columns)";
    expect(submitLibraryWork(stream, what, regions, work) == CUDA_SUCCESS, CUBLAS_STATUS_EXECUTION_FAILED,
           softDeviceFault());
  });
}
