//===- TreeSumTest.cpp - parts added along the canonical tree -------------===//

#include "Kernels/CUDA/TreeSum.h"
#include "OnDevice.h"

namespace dsopt::runtime::cuda {
namespace {

class TreeSumTest : public OnDevice {
protected:
  /// Of `count` members, with any of them as this rank, beside the host's.
  template <typename T> void sums(int count, int64_t elements, bool accumulate) {
    constexpr auto type = static_cast<Element>(typeOf<T>());
    int64_t stride = elements + 64;
    int self = count / 2;
    std::vector<T> parts = numbersAs<T>(count * stride, count), own = numbersAs<T>(elements, 77);
    std::vector<T> expected = numbersAs<T>(elements, 99);
    T *target = upload(expected);
    std::vector<const void *> hosts;
    for (int member = 0; member < count; ++member)
      hosts.push_back(member == self ? own.data() : parts.data() + member * stride);
    treeSum(type, hosts.data(), count, expected.data(), elements, accumulate);
    TreeSum(device).launch(stream, type, {upload(own), upload(parts), stride, self, count}, target, elements,
                           accumulate);
    expectSame(download(target, elements), expected);
  }
};

TEST_F(TreeSumTest, HasTheHostsBits) {
  for (int count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 21, 32})
    for (bool accumulate : {false, true}) {
      sums<float>(count, 320, accumulate);
      sums<uint16_t>(count, 320, accumulate);
      sums<_Float16>(count, 320, accumulate);
    }
}

} // namespace
} // namespace dsopt::runtime::cuda
