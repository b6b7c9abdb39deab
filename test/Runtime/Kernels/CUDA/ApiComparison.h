//===- ApiComparison.h - our interfaces of libraries and theirs -*- C++ -*-===//

#ifndef DSOPT_TEST_RUNTIME_KERNELS_CUDA_APICOMPARISON_H
#define DSOPT_TEST_RUNTIME_KERNELS_CUDA_APICOMPARISON_H

#include <type_traits>

/// Whether a value of one type is passed as one of the other is.
template <class Ours, class Theirs> constexpr bool comparePassing() {
  if constexpr (std::is_void_v<Ours>)
    return std::is_void_v<Theirs>;
  else
    return sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
           std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;
}
template <class Ours, class Theirs> constexpr bool isPassedAlike = comparePassing<Ours, Theirs>();

template <class Ours, class Theirs> struct IsCalledAlike : std::false_type {};
template <class Ours, class Theirs, class... OurParameters, class... TheirParameters>
struct IsCalledAlike<Ours (*)(OurParameters...), Theirs (*)(TheirParameters...)> {
  static constexpr bool test() {
    if constexpr (sizeof...(OurParameters) == sizeof...(TheirParameters))
      return isPassedAlike<Ours, Theirs> && (isPassedAlike<OurParameters, TheirParameters> && ...);
    return false;
  }
  static constexpr bool value = test();
};

#endif // DSOPT_TEST_RUNTIME_KERNELS_CUDA_APICOMPARISON_H
