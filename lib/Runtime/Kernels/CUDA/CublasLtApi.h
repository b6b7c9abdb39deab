//===- CublasLtApi.h - the part of cuBLASLt's interface in use --*- C++ -*-===//
//
// Types, numbers and functions as cuBLASLt 12 and 13 have them. Nothing is linked and no
// header of the toolkit is needed: CublasLt.h opens the library. The test DriverApiTest compares
// these with the toolkit's where that is installed.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CUDA_CUBLASLTAPI_H
#define DSOPT_LIB_RUNTIME_KERNELS_CUDA_CUBLASLTAPI_H

#include "Kernels/CUDA/DriverApi.h"

#include <cstdint>

namespace dsopt::runtime::cuda {

using LtStatus = int; ///< cublasStatus_t
using LtHandle = struct LtContext *;
using LtOperation = struct LtOperationObject *;   ///< cublasLtMatmulDesc_t
using LtLayout = struct LtLayoutObject *;         ///< cublasLtMatrixLayout_t
using LtPreference = struct LtPreferenceObject *; ///< cublasLtMatmulPreference_t

inline constexpr LtStatus kLtSuccess = 0;

/// cudaDataType_t.
enum LtType : int { kLtF32 = 0, kLtF64 = 1, kLtF16 = 2, kLtBf16 = 14 };
/// cublasComputeType_t.
enum LtCompute : int { kLtComputeF32 = 68, kLtComputeF64 = 70, kLtComputeTf32 = 77 };
/// cublasOperation_t.
enum LtTranspose : int { kLtNormal = 0, kLtTransposed = 1 };

/// cublasLtMatmulDescAttributes_t: an int32_t each, a uint32_t, two pointers and an int64_t.
enum LtOperationAttribute : int {
  kLtTransposeA = 3,
  kLtTransposeB = 4,
  kLtEpilogue = 7,
  kLtBiasPointer = 8,
  kLtAuxPointer = 11,
  kLtAuxLeading = 12,
};

/// cublasLtEpilogue_t.
enum LtEpilogue : int {
  kLtNoEpilogue = 1,
  kLtBias = 4,
  kLtGeluBias = 36,
  kLtGeluAuxBias = 164,
  kLtGeluGrad = 192,
};

/// cublasLtMatrixLayoutAttribute_t: an int32_t and an int64_t.
enum LtLayoutAttribute : int { kLtBatchCount = 5, kLtBatchStride = 6 };

/// cublasLtMatmulPreferenceAttributes_t: a uint64_t, and uint32_t.
enum LtPreferenceAttribute : int {
  kLtMaxWorkspaceBytes = 1,
  kLtReductionSchemes = 3,
  kLtMinAlignmentA = 5,
  kLtMinAlignmentB = 6,
  kLtMinAlignmentC = 7,
  kLtMinAlignmentD = 8,
};

/// cublasLtMatmulAlgoConfigAttributes_t: of 4 bytes, the last two of 2.
enum LtConfigAttribute : int {
  kLtAlgorithmId = 0,
  kLtTile = 1,
  kLtSplitK = 2,
  kLtReductionScheme = 3,
  kLtSwizzle = 4,
  kLtCustomOption = 5,
  kLtStages = 6,
  kLtInnerShape = 7,
  kLtClusterShape = 8,
};

/// cublasLtMatmulAlgoCapAttributes_t: a uint64_t.
enum LtCapability : int { kLtNumericalFlags = 15 };
/// The bits of kLtNumericalFlags that say which units multiply: this one is plain multiplications and
/// additions. And those that say what they take.
inline constexpr uint64_t kLtOperationMask = 0xff, kLtOperationFma = 1, kLtInputMask = 0xff << 16,
                          kLtInputTf32 = 1 << 18;

/// cublasLtMatmulAlgo_t.
struct LtAlgorithm {
  uint64_t data[8];
};

/// cublasLtMatmulHeuristicResult_t.
struct LtCandidate {
  LtAlgorithm algorithm;
  size_t workspaceBytes;
  LtStatus state;
  float waves;
  int reserved[4];
};

/// F(result, name in the library, parameters).
#define DSOPT_CUBLASLT(F)                                                                                    \
  F(size_t, cublasLtGetVersion, ())                                                                          \
  F(const char *, cublasLtGetStatusName, (LtStatus status))                                                  \
  F(const char *, cublasLtGetStatusString, (LtStatus status))                                                \
  F(LtStatus, cublasLtCreate, (LtHandle * handle))                                                           \
  F(LtStatus, cublasLtDestroy, (LtHandle handle))                                                            \
  F(LtStatus, cublasLtMatmulDescCreate, (LtOperation * operation, int compute, int scaleType))               \
  F(LtStatus, cublasLtMatmulDescDestroy, (LtOperation operation))                                            \
  F(LtStatus, cublasLtMatmulDescSetAttribute,                                                                \
    (LtOperation operation, int attribute, const void *value, size_t bytes))                                 \
  F(LtStatus, cublasLtMatrixLayoutCreate,                                                                    \
    (LtLayout * layout, int type, uint64_t rows, uint64_t columns, int64_t leading))                         \
  F(LtStatus, cublasLtMatrixLayoutDestroy, (LtLayout layout))                                                \
  F(LtStatus, cublasLtMatrixLayoutSetAttribute,                                                              \
    (LtLayout layout, int attribute, const void *value, size_t bytes))                                       \
  F(LtStatus, cublasLtMatmulPreferenceCreate, (LtPreference * preference))                                   \
  F(LtStatus, cublasLtMatmulPreferenceDestroy, (LtPreference preference))                                    \
  F(LtStatus, cublasLtMatmulPreferenceSetAttribute,                                                          \
    (LtPreference preference, int attribute, const void *value, size_t bytes))                               \
  F(LtStatus, cublasLtMatmulAlgoGetHeuristic,                                                                \
    (LtHandle handle, LtOperation operation, LtLayout a, LtLayout b, LtLayout c, LtLayout d,                 \
     LtPreference preference, int most, LtCandidate *candidates, int *count))                                \
  F(LtStatus, cublasLtMatmulAlgoCheck,                                                                       \
    (LtHandle handle, LtOperation operation, LtLayout a, LtLayout b, LtLayout c, LtLayout d,                 \
     const LtAlgorithm *algorithm, LtCandidate *result))                                                     \
  F(LtStatus, cublasLtMatmulAlgoConfigGetAttribute,                                                          \
    (const LtAlgorithm *algorithm, int attribute, void *value, size_t bytes, size_t *written))               \
  F(LtStatus, cublasLtMatmulAlgoCapGetAttribute,                                                             \
    (const LtAlgorithm *algorithm, int attribute, void *value, size_t bytes, size_t *written))               \
  F(LtStatus, cublasLtMatmul,                                                                                \
    (LtHandle handle, LtOperation operation, const void *alpha, const void *a, LtLayout layoutA,             \
     const void *b, LtLayout layoutB, const void *beta, const void *c, LtLayout layoutC, void *d,            \
     LtLayout layoutD, const LtAlgorithm *algorithm, void *workspace, size_t workspaceBytes,                 \
     StreamHandle stream))

} // namespace dsopt::runtime::cuda

#endif // DSOPT_LIB_RUNTIME_KERNELS_CUDA_CUBLASLTAPI_H
