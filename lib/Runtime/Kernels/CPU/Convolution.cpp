//===- Convolution.cpp - convolutions are a device's -----------------------===//

#include "Kernels/CPU/Runtime.h"
#include "Kernels/DeviceCalls.h"
#include "dsopt/Runtime/Error.h"

using namespace dsopt::runtime;

extern "C" void dsopt_rt_convolution(dsopt_rt *rt, const dsopt_convolution *convolution, const void *a,
                                     const void *b, void *result, void *workspace, int64_t accumulate) {
  CallTimer timer(rt->profile);
  if (!rt->device)
    throw Error(StatusFailure, "a program for the host has a convolution, expected products");
  rt->device->convolution(*convolution, a, b, result, workspace, accumulate != 0);
}
