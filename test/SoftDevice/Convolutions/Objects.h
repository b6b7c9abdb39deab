//===- Objects.h - what the library's calls work on -------------*- C++ -*-===//

#ifndef DSOPT_TEST_SOFTDEVICE_CONVOLUTIONS_OBJECTS_H
#define DSOPT_TEST_SOFTDEVICE_CONVOLUTIONS_OBJECTS_H

#include "Api.h"

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

struct softDnnContext {
  CUstream stream = nullptr;
};
struct softTensor {
  int type = -1;
  std::vector<int64_t> shape, strides; ///< the second dimension is of channels
};
struct softFilter {
  int type = -1, format = 0;
  std::vector<int64_t> shape;
};
struct softWindows {
  std::vector<int64_t> pads, strides, dilations;
  int groups = 1, math = CUDNN_DEFAULT_MATH;
};

namespace softdevice {

/// A call that fails: its status, with what is wrong for who looks.
struct ConvolutionError {
  cudnnStatus_t status;
  std::string text;
};

inline void expect(bool holds, cudnnStatus_t status, const std::string &text) {
  if (!holds)
    throw ConvolutionError{status, text};
}

/// What is open, and what the environment says: SOFT_CUDNN="version=91300,scratch=0".
struct Objects {
  std::mutex mutex;
  std::string fault;
  std::set<const void *> all;
  static Objects &get();
};

template <typename Object> Object *known(Objects &objects, Object *one) {
  expect(objects.all.count(one), CUDNN_STATUS_BAD_PARAM, "this is no object of the library");
  return one;
}

/// Every call: under a lock, with what goes wrong as its status.
cudnnStatus_t callConvolutions(const std::function<void(Objects &)> &work);

/// A number of SOFT_CUDNN, by its name.
uint64_t setting(const char *name, uint64_t byDefault);

enum class Kind { Forward, Data, Weight };

/// A convolution as its objects describe it, of three dimensions that are moved over.
struct Convolution {
  Kind kind;
  int type, math;
  int64_t batch, channels, outputs, groups;
  int64_t size[3], count[3], kernel[3], stride[3], dilation[3], pad[3];
  int64_t x[5], w[5], y[5];          ///< strides in elements
  int64_t extentX, extentW, extentY; ///< elements in all
  /// Products that are added before their sum is, and whether the last of the inner dimensions is first.
  int64_t group;
  bool isReversed;
  uint64_t scratch; ///< bytes of workspace
};

/// Throws where the algorithm does not do it.
Convolution convolutionOf(Objects &objects, Kind kind, const softTensor *x, const softFilter *w,
                          const softWindows *windows, const softTensor *y, int algorithm);

/// The result is alpha times the sums, and beta times what there was.
void convolve(const Convolution &c, float alpha, const char *a, const char *b, float beta, char *result);

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_CONVOLUTIONS_OBJECTS_H
