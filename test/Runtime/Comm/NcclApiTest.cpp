//===- NcclApiTest.cpp - our interface of NCCL and its own ----------------===//
//
// Compiled where NCCL's header is: numbers and layouts have to be the same, and functions
// to take and return as many values of the same sizes.
//
//===----------------------------------------------------------------------===//

#include "Comm/NcclApi.h"

#include <gtest/gtest.h>
#include <nccl.h>

namespace nccl = dsopt::runtime::nccl;

template <class Ours, class Theirs> struct IsCalledAlike : std::false_type {};
template <class Ours, class Theirs, class... OurParameters, class... TheirParameters>
struct IsCalledAlike<Ours (*)(OurParameters...), Theirs (*)(TheirParameters...)> {
  static constexpr bool test() {
    if constexpr (sizeof...(OurParameters) == sizeof...(TheirParameters))
      return sizeof(Ours) == sizeof(Theirs) &&
             ((sizeof(OurParameters) == sizeof(TheirParameters) &&
               std::is_pointer_v<OurParameters> == std::is_pointer_v<TheirParameters>) &&
              ...);
    return false;
  }
  static constexpr bool value = test();
};

namespace dsopt::runtime::nccl {
#define DSOPT_COMPARE(name, returns, parameters)                                                             \
  static_assert(IsCalledAlike<returns(*) parameters, decltype(&::name)>::value, #name);
DSOPT_NCCL_LIBRARY(DSOPT_COMPARE)
#undef DSOPT_COMPARE
} // namespace dsopt::runtime::nccl

static_assert(nccl::kSuccess == ncclSuccess && nccl::kInProgress == ncclInProgress &&
              static_cast<int>(nccl::kUint8) == static_cast<int>(ncclUint8) &&
              sizeof(nccl::UniqueId) == NCCL_UNIQUE_ID_BYTES);

#define DSOPT_SAME_PLACE(ours, theirs)                                                                       \
  static_assert(offsetof(nccl::Config, ours) == offsetof(ncclConfig_t, theirs));
DSOPT_SAME_PLACE(size, size)
DSOPT_SAME_PLACE(magic, magic)
DSOPT_SAME_PLACE(version, version)
DSOPT_SAME_PLACE(blocking, blocking)
DSOPT_SAME_PLACE(cgaClusterSize, cgaClusterSize)
DSOPT_SAME_PLACE(minCtas, minCTAs)
DSOPT_SAME_PLACE(maxCtas, maxCTAs)
DSOPT_SAME_PLACE(netName, netName)
DSOPT_SAME_PLACE(splitShare, splitShare)

TEST(NcclApi, ConfigurationsBeginAlike) {
  ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  nccl::Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.cgaClusterSize, theirs.cgaClusterSize);
  EXPECT_EQ(ours.splitShare, theirs.splitShare);
}
