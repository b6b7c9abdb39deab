//===- DriverApiTest.cpp - our interfaces of CUDA's libraries and theirs ---===//
//
// Compiled where the toolkit's headers are: numbers have to be the same, and functions to
// take and return what is passed alike.
//
//===----------------------------------------------------------------------===//

#include "ApiComparison.h"
#include "Kernels/CUDA/CublasLtApi.h"

#include <cublasLt.h>
#include <cuda.h>
#include <gtest/gtest.h>

namespace cuda = dsopt::runtime::cuda;

namespace dsopt::runtime::cuda {
#define DSOPT_COMPARE(name, parameters)                                                                      \
  static_assert(IsCalledAlike<Result(*) parameters, decltype(&::name)>::value, #name);
DSOPT_CUDA_DRIVER(DSOPT_COMPARE)
#undef DSOPT_COMPARE
#define DSOPT_COMPARE(result, name, parameters)                                                              \
  static_assert(IsCalledAlike<result(*) parameters, decltype(&::name)>::value, #name);
DSOPT_CUBLASLT(DSOPT_COMPARE)
#undef DSOPT_COMPARE
} // namespace dsopt::runtime::cuda

#define DSOPT_SAME(ours, theirs)                                                                             \
  static_assert(static_cast<int64_t>(cuda::ours) == static_cast<int64_t>(theirs), #ours);

DSOPT_SAME(kSuccess, CUDA_SUCCESS)
DSOPT_SAME(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY)
DSOPT_SAME(kNoDevice, CUDA_ERROR_NO_DEVICE)
DSOPT_SAME(kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU)
DSOPT_SAME(kInvalidPtx, CUDA_ERROR_INVALID_PTX)
DSOPT_SAME(kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
DSOPT_SAME(kNotFound, CUDA_ERROR_NOT_FOUND)
DSOPT_SAME(kNotReady, CUDA_ERROR_NOT_READY)
DSOPT_SAME(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
DSOPT_SAME(kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
DSOPT_SAME(kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
DSOPT_SAME(kMaxSharedMemoryPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
DSOPT_SAME(kSharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
DSOPT_SAME(kLocalSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
DSOPT_SAME(kRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS)
DSOPT_SAME(kMaxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
DSOPT_SAME(kStreamNonBlocking, CU_STREAM_NON_BLOCKING)
DSOPT_SAME(kEventDisableTiming, CU_EVENT_DISABLE_TIMING)
DSOPT_SAME(kHostPortable, CU_MEMHOSTALLOC_PORTABLE)
DSOPT_SAME(kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)

DSOPT_SAME(kLtSuccess, CUBLAS_STATUS_SUCCESS)
DSOPT_SAME(kLtF32, CUDA_R_32F)
DSOPT_SAME(kLtF64, CUDA_R_64F)
DSOPT_SAME(kLtF16, CUDA_R_16F)
DSOPT_SAME(kLtBf16, CUDA_R_16BF)
DSOPT_SAME(kLtComputeF32, CUBLAS_COMPUTE_32F)
DSOPT_SAME(kLtComputeF64, CUBLAS_COMPUTE_64F)
DSOPT_SAME(kLtComputeTf32, CUBLAS_COMPUTE_32F_FAST_TF32)
DSOPT_SAME(kLtNormal, CUBLAS_OP_N)
DSOPT_SAME(kLtTransposed, CUBLAS_OP_T)
DSOPT_SAME(kLtTransposeA, CUBLASLT_MATMUL_DESC_TRANSA)
DSOPT_SAME(kLtTransposeB, CUBLASLT_MATMUL_DESC_TRANSB)
DSOPT_SAME(kLtEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE)
DSOPT_SAME(kLtBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER)
DSOPT_SAME(kLtAuxPointer, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER)
DSOPT_SAME(kLtAuxLeading, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD)
DSOPT_SAME(kLtNoEpilogue, CUBLASLT_EPILOGUE_DEFAULT)
DSOPT_SAME(kLtBias, CUBLASLT_EPILOGUE_BIAS)
DSOPT_SAME(kLtGeluBias, CUBLASLT_EPILOGUE_GELU_BIAS)
DSOPT_SAME(kLtGeluAuxBias, CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
DSOPT_SAME(kLtGeluGrad, CUBLASLT_EPILOGUE_DGELU)
DSOPT_SAME(kLtBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
DSOPT_SAME(kLtBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
DSOPT_SAME(kLtMaxWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
DSOPT_SAME(kLtReductionSchemes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
DSOPT_SAME(kLtMinAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)
DSOPT_SAME(kLtMinAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES)
DSOPT_SAME(kLtMinAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES)
DSOPT_SAME(kLtMinAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)
DSOPT_SAME(kLtAlgorithmId, CUBLASLT_ALGO_CONFIG_ID)
DSOPT_SAME(kLtTile, CUBLASLT_ALGO_CONFIG_TILE_ID)
DSOPT_SAME(kLtSplitK, CUBLASLT_ALGO_CONFIG_SPLITK_NUM)
DSOPT_SAME(kLtReductionScheme, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)
DSOPT_SAME(kLtSwizzle, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING)
DSOPT_SAME(kLtCustomOption, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION)
DSOPT_SAME(kLtStages, CUBLASLT_ALGO_CONFIG_STAGES_ID)
DSOPT_SAME(kLtInnerShape, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID)
DSOPT_SAME(kLtClusterShape, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID)
DSOPT_SAME(kLtNumericalFlags, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS)
DSOPT_SAME(kLtOperationMask, CUBLASLT_NUMERICAL_IMPL_FLAGS_OP_TYPE_MASK)
DSOPT_SAME(kLtOperationFma, CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA)

static_assert(sizeof(cuda::LtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(cuda::LtCandidate) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(cuda::LtCandidate, workspaceBytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(cuda::LtCandidate, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));

TEST(DriverApi, IsTheToolkits) {}
