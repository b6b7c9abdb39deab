//===- Epilogues.cpp - what follows a sum before it is stored -------------===//
//
// Those that dsopt asks for, with what the library's documentation demands of them. GELU is
// the approximation by tanh.
//
//===----------------------------------------------------------------------===//

#include "Objects.h"

#include <algorithm>
#include <cmath>

namespace softdevice {

bool hasEpilogue(const Product &product) { return product.operation->epilogue != CUBLASLT_EPILOGUE_DEFAULT; }
bool addsBias(const softOperation &operation) { return operation.epilogue & CUBLASLT_EPILOGUE_BIAS; }
bool writesAux(const softOperation &operation) {
  return operation.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}
bool readsAux(const softOperation &operation) { return operation.epilogue == CUBLASLT_EPILOGUE_DGELU; }

void checkEpilogue(const Product &product) {
  const softOperation &operation = *product.operation;
  if (!hasEpilogue(product))
    return;
  std::string name = "epilogue " + std::to_string(operation.epilogue);
  auto invalid = [&](bool holds, const std::string &text) {
    expect(holds, CUBLAS_STATUS_INVALID_VALUE, name + text);
  };
  static constexpr uint32_t kKnown[] = {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS,
                                        CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU};
  expect(std::count(std::begin(kKnown), std::end(kKnown), operation.epilogue), CUBLAS_STATUS_NOT_SUPPORTED,
         "the software device does not have " + name);
  expect(product.d->type != CUDA_R_64F && product.d->count == 1, CUBLAS_STATUS_NOT_SUPPORTED,
         "the software device has " + name + " for single matrices of at most 32 bits");
  // Heuristics, too, go by the places' alignment: null has every one.
  if (addsBias(operation)) {
    invalid(operation.bias, " has no bias");
    invalid(reinterpret_cast<uint64_t>(operation.bias) % bytesOfType(product.d->type) == 0,
            " has a bias that is not aligned as its type");
  }
  if (writesAux(operation) || readsAux(operation)) {
    invalid(operation.aux, " has no auxiliary matrix");
    invalid(operation.auxLeading % 8 == 0 && operation.auxLeading >= product.m,
            " has an auxiliary matrix with a leading dimension of " + std::to_string(operation.auxLeading) +
                ", expected a multiple of 8 of at least " + std::to_string(product.m));
  }
}

static constexpr double kScale = 0.7978845608028654, kCubic = 0.044715; // sqrt(2 / pi)

static double gelu(double x) { return 0.5 * x * (1 + std::tanh(kScale * (x + kCubic * x * x * x))); }

static double geluSlope(double x) {
  double t = std::tanh(kScale * (x + kCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kScale * (1 + 3 * kCubic * x * x);
}

float finish(const EpilogueShape &shape, const EpiloguePlaces &places, int64_t row, int64_t column,
             float sum) {
  int64_t at = row + column * shape.auxLeading;
  if (shape.epilogue == CUBLASLT_EPILOGUE_DGELU)
    return static_cast<float>(sum * geluSlope(loadElement(places.aux, at, shape.type)));
  sum += loadElement(places.bias, row, shape.type);
  if (shape.epilogue == CUBLASLT_EPILOGUE_BIAS)
    return sum;
  if (places.aux)
    storeElement(places.aux, at, shape.type, sum);
  return static_cast<float>(gelu(sum));
}

} // namespace softdevice
