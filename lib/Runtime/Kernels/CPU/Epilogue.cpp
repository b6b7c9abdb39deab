//===- Epilogue.cpp - products with an epilogue are a device's -------------===//

#include "Kernels/CPU/Runtime.h"
#include "Kernels/DeviceCalls.h"
#include "dsopt/Runtime/Error.h"

using namespace dsopt::runtime;

extern "C" void dsopt_rt_gemm_epilogue(dsopt_rt *rt, const dsopt_gemm_epilogue *product, const void *a,
                                       const void *b, const void *given, void *kept, void *c) {
  CallTimer timer(rt->profile);
  if (!rt->device)
    throw Error(StatusFailure,
                "a program for the host has a product with an epilogue, expected a product and a kernel");
  rt->device->gemmEpilogue(*product, a, b, given, kept, c);
}
