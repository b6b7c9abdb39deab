//===- Ctc.cpp - connectionist temporal classification ---------------------===//
//
// A sample is one thread's: additions are in one order whatever the threads.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Runtime/Ctc.h"
#include "Kernels/CPU/Runtime.h"

using namespace dsopt::runtime;

extern "C" void dsopt_rt_ctc(dsopt_rt *rt, const dsopt_ctc *d, const float *logs, const int64_t *targets,
                             const int64_t *inputLengths, const int64_t *targetLengths, void *workspace,
                             float *losses) {
  CallTimer timer(rt->profile);
  if (rt->device) {
    rt->device->ctc(*d, logs, targets, inputLengths, targetLengths, workspace, losses);
    return;
  }
  rt->pool->split(0, d->batch, 1, [&](int64_t begin, int64_t end, int) {
    ctcLosses(*d, logs, targets, inputLengths, targetLengths, losses, static_cast<double *>(workspace), begin,
              end);
  });
}

extern "C" void dsopt_rt_ctc_grad(dsopt_rt *rt, const dsopt_ctc *d, const float *logs, const int64_t *targets,
                                  const int64_t *inputLengths, const int64_t *targetLengths,
                                  const float *grad, void *workspace, float *gradient) {
  CallTimer timer(rt->profile);
  if (rt->device) {
    rt->device->ctcGrad(*d, logs, targets, inputLengths, targetLengths, grad, workspace, gradient);
    return;
  }
  rt->pool->split(0, d->batch, 1, [&](int64_t begin, int64_t end, int) {
    ctcGradients(*d, logs, targets, inputLengths, targetLengths, grad, gradient,
                 static_cast<double *>(workspace), begin, end);
  });
}
