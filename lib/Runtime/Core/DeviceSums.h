//===- DeviceSums.h - what a device sums the squares of ---------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_CORE_DEVICESUMS_H
#define DSOPT_LIB_RUNTIME_CORE_DEVICESUMS_H

#include "Core/SquareSums.h"
#include "Kernels/CUDA/Memory.h"
#include "Kernels/CUDA/SquarePiece.h"

namespace dsopt::runtime {

/// The pieces of a range on a device: what the host cuts a parameter's part in, joined. Their `sum` is 0.
std::vector<cuda::SquarePiece> piecesOnDevice(const SquareSums &sums, size_t range, Element type,
                                              const cuda::Memory &memory);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_DEVICESUMS_H
