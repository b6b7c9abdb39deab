//===- InstructionTest.cpp - one instruction at a time --------------------===//
//
// Each spelling runs on 32 lanes of ordinary and of odd values; what it must make of
// them is written here as PTX's manual says it.
//
//===----------------------------------------------------------------------===//

#include "Machine/Numbers.h"
#include "Machine/Program.h"
#include "Machine/Warp.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace softdevice;

namespace {
constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

/// Names of types as the kernels below need them.
template <class T> inline constexpr const char *kName = "";
template <> inline constexpr const char *kName<uint16_t> = "b16";
template <> inline constexpr const char *kName<uint32_t> = "b32";
template <> inline constexpr const char *kName<int32_t> = "s32";
template <> inline constexpr const char *kName<uint64_t> = "b64";
template <> inline constexpr const char *kName<int64_t> = "s64";
template <> inline constexpr const char *kName<float> = "f32";
template <> inline constexpr const char *kName<double> = "f64";

template <class T> std::vector<T> samples() {
  std::vector<T> values;
  if constexpr (std::is_floating_point_v<T>) {
    T tiny = std::numeric_limits<T>::denorm_min() * 5;
    for (T value : {T(0),     T(-0.0), T(1),     T(-1),   T(0.5),   T(1.5),   T(2.5),  T(-2.5),
                    T(3.999), T(1e10), T(-1e10), T(3e38), T(kInf),  T(-kInf), T(kNaN), tiny,
                    -tiny,    T(0.1),  T(-7.25), T(255),  T(256.5), T(65504), T(1e-7), T(-1e-3)})
      values.push_back(value);
  } else {
    for (T value : {T(0),  T(1),  T(2),  T(3),    T(5),      T(7),      T(8),     T(31),
                    T(32), T(33), T(63), T(100),  T(127),    T(128),    T(255),   T(256),
                    T(-1), T(-2), T(-3), T(-128), T(0x7fff), T(0x8000), T(12345), T(0xfedcba98)})
      values.push_back(value);
    values.push_back(std::numeric_limits<T>::max());
    values.push_back(std::numeric_limits<T>::min());
  }
  for (size_t i = 0; values.size() < kLanes; ++i)
    values.push_back(values[i * 7 % 23]);
  return values;
}

template <class T> bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof(T)) == 0;
  return a == b;
}

class Instruction : public testing::Test {
protected:
  Memory memory{16 << 20};

  template <class T> uint64_t upload(const std::vector<T> &values) {
    uint64_t address = memory.allocate(values.size() * sizeof(T), "an allocation");
    std::memcpy(memory.reach(address, values.size() * sizeof(T), false, true, "upload"), values.data(),
                values.size() * sizeof(T));
    return address;
  }
  /// Runs `text`, which makes %to of %a, %b and %c.
  template <class R, class A, class B, class C>
  std::vector<R> run(const std::string &text, const std::vector<A> &a, const std::vector<B> &b,
                     const std::vector<C> &c) {
    std::string kernel =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 pa, .param .u64 pb, "
        ".param .u64 pc, .param .u64 pto)\n{\n.reg .pred %p, %q; .reg .b32 %lane; .reg .b64 %at, %base;\n";
    auto declare = [&](const std::string &name, const char *type) {
      kernel += ".reg ." + std::string(type) + " " + name + ";\n";
    };
    declare("%a", kName<A>), declare("%b", kName<B>), declare("%c", kName<C>);
    declare("%to", kName<R>);
    auto move = [&](const std::string &parameter, size_t bytes, const std::string &access) {
      kernel += "ld.param.u64 %base, [" + parameter + "]; mul.wide.u32 %at, %lane, " + std::to_string(bytes) +
                "; add.s64 %at, %base, %at; " + access + "\n";
    };
    kernel += "mov.u32 %lane, %tid.x;\n";
    move("pa", sizeof(A), std::string("ld.global.") + kName<A> + " %a, [%at];");
    move("pb", sizeof(B), std::string("ld.global.") + kName<B> + " %b, [%at];");
    move("pc", sizeof(C), std::string("ld.global.") + kName<C> + " %c, [%at];");
    kernel += text + "\n";
    move("pto", sizeof(R), std::string("st.global.") + kName<R> + " [%at], %to;");
    kernel += "ret;\n}\n";
    Program program(memory, kernel);
    const Kernel *found = program.kernel("k");
    EXPECT_EQ(found->unsupported, std::vector<std::string>());
    uint64_t to = memory.allocate(kLanes * sizeof(R), "an allocation");
    uint64_t parameters[] = {upload(a), upload(b), upload(c), to};
    std::mt19937_64 random(1);
    Grid grid{*found, memory, reinterpret_cast<char *>(parameters), {1, 1, 1}, {kLanes, 1, 1}, 0, random};
    runGrid(grid);
    std::vector<R> made(kLanes);
    std::memcpy(made.data(), memory.reach(to, kLanes * sizeof(R), true, false, "download"),
                kLanes * sizeof(R));
    return made;
  }
  /// Compares with `expected` on samples; operands in different orders.
  template <class R, class A, class B, class C, class F> void check3(const std::string &text, F expected) {
    std::vector<A> a = samples<A>();
    std::vector<B> b = samples<B>();
    std::vector<C> c = samples<C>();
    for (int turn = 0; turn < kLanes; turn += 3) {
      std::rotate(b.begin(), b.begin() + 3, b.end());
      std::rotate(c.begin(), c.begin() + 5, c.end());
      std::vector<R> made = run<R>(text, a, b, c);
      for (int lane = 0; lane < kLanes; ++lane)
        if (R right = expected(a[lane], b[lane], c[lane]); !same(made[lane], right)) {
          ADD_FAILURE() << text << " of " << +a[lane] << ", " << +b[lane] << ", " << +c[lane] << " is "
                        << +made[lane] << ", expected " << +right;
          return;
        }
    }
  }
  template <class R, class A, class B, class F> void check2(const std::string &text, F expected) {
    check3<R, A, B, uint32_t>(text, [&](A a, B b, uint32_t) { return expected(a, b); });
  }
  template <class R, class A, class F> void check1(const std::string &text, F expected) {
    check3<R, A, uint32_t, uint32_t>(text, [&](A a, uint32_t, uint32_t) { return expected(a); });
  }
};
using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
} // namespace

TEST_F(Instruction, WholeNumbers) {
  check2<i32, i32, i32>("add.s32 %to, %a, %b;", [](i32 a, i32 b) { return i32(u32(a) + u32(b)); });
  check2<u64, u64, u64>("sub.s64 %to, %a, %b;", [](u64 a, u64 b) { return a - b; });
  check2<u16, u16, u16>("add.u16 %to, %a, %b;", [](u16 a, u16 b) { return u16(a + b); });
  check2<i32, i32, i32>("mul.lo.s32 %to, %a, %b;", [](i32 a, i32 b) { return i32(i64(a) * b); });
  check2<i32, i32, i32>("mul.hi.s32 %to, %a, %b;", [](i32 a, i32 b) { return i32(i64(a) * b >> 32); });
  check2<u32, u32, u32>("mul.hi.u32 %to, %a, %b;", [](u32 a, u32 b) { return u32(u64(a) * b >> 32); });
  check2<u64, u64, u64>("mul.hi.u64 %to, %a, %b;",
                        [](u64 a, u64 b) { return u64((unsigned __int128)a * b >> 64); });
  check2<i64, i32, i32>("mul.wide.s32 %to, %a, %b;", [](i32 a, i32 b) { return i64(a) * b; });
  check2<u64, u32, u32>("mul.wide.u32 %to, %a, %b;", [](u32 a, u32 b) { return u64(a) * b; });
  check2<u32, u16, u16>("mul.wide.u16 %to, %a, %b;", [](u16 a, u16 b) { return u32(a) * b; });
  check3<i32, i32, i32, i32>("mad.lo.s32 %to, %a, %b, %c;",
                             [](i32 a, i32 b, i32 c) { return i32(u32(i64(a) * b) + u32(c)); });
  check3<i64, i32, i32, i64>("mad.wide.s32 %to, %a, %b, %c;",
                             [](i32 a, i32 b, i64 c) { return i64(u64(i64(a) * b) + u64(c)); });
  check2<i32, i32, i32>("div.s32 %to, %a, %b;", [](i32 a, i32 b) { return b == 0 ? -1 : i32(i64(a) / b); });
  check2<u32, u32, u32>("div.u32 %to, %a, %b;", [](u32 a, u32 b) { return b == 0 ? ~0u : a / b; });
  check2<i64, i64, i64>("rem.s64 %to, %a, %b;", [](i64 a, i64 b) {
    return b == 0 ? a : b == -1 ? 0 : a % b;
  });
  check2<i32, i32, i32>("min.s32 %to, %a, %b;", [](i32 a, i32 b) { return std::min(a, b); });
  check2<u32, u32, u32>("max.u32 %to, %a, %b;", [](u32 a, u32 b) { return std::max(a, b); });
  check1<i32, i32>("abs.s32 %to, %a;", [](i32 a) { return i32(a < 0 ? 0 - u32(a) : a); });
  check1<i64, i64>("neg.s64 %to, %a;", [](i64 a) { return i64(0 - u64(a)); });
}

TEST_F(Instruction, Bits) {
  check2<u32, u32, u32>("and.b32 %to, %a, %b;", [](u32 a, u32 b) { return a & b; });
  check2<u64, u64, u64>("xor.b64 %to, %a, %b;", [](u64 a, u64 b) { return a ^ b; });
  check2<u16, u16, u16>("or.b16 %to, %a, %b;", [](u16 a, u16 b) { return u16(a | b); });
  check1<u32, u32>("not.b32 %to, %a;", [](u32 a) { return ~a; });
  check2<u32, u32, u32>("shl.b32 %to, %a, %b;", [](u32 a, u32 b) { return b > 31 ? 0 : a << b; });
  check2<u64, u64, u32>("shl.b64 %to, %a, %b;", [](u64 a, u32 b) { return b > 63 ? 0 : a << b; });
  check2<i32, i32, u32>("shr.s32 %to, %a, %b;", [](i32 a, u32 b) { return a >> std::min(b, 31u); });
  check2<u64, u64, u32>("shr.u64 %to, %a, %b;", [](u64 a, u32 b) { return b > 63 ? 0 : a >> b; });
  check1<u32, u32>("popc.b32 %to, %a;", [](u32 a) { return u32(__builtin_popcount(a)); });
  check1<u32, u64>("clz.b64 %to, %a;", [](u64 a) { return a ? u32(__builtin_clzll(a)) : 64; });
  check1<u32, u32>("brev.b32 %to, %a;", [](u32 a) {
    u32 made = 0;
    for (int bit = 0; bit < 32; ++bit)
      made |= (a >> bit & 1) << (31 - bit);
    return made;
  });
  check1<u32, i32>("bfind.s32 %to, %a;", [](i32 a) {
    u32 bits = a < 0 ? ~a : a;
    return bits ? 31 - __builtin_clz(bits) : ~0u;
  });
  check1<u32, u32>("bfe.u32 %to, %a, 4, 8;", [](u32 a) { return a >> 4 & 255; });
  check1<i32, i32>("bfe.s32 %to, %a, 4, 8;", [](i32 a) { return i32(int8_t(a >> 4)); });
  check1<i32, i32>("bfe.s32 %to, %a, 28, 8;", [](i32 a) { return a >> 28; });
  // Bit by bit: behind the field, and behind the value, its sign goes on.
  auto field = [](auto a, u32 position, u32 length) {
    using T = decltype(a);
    constexpr u32 kMost = 8 * sizeof(T) - 1;
    position &= 255, length &= 255;
    u64 made = 0;
    for (u32 i = 0; i <= kMost; ++i) {
      u32 from = i < length && position + i <= kMost ? position + i : std::min(position + length - 1, kMost);
      bool isThere = (i < length && position + i <= kMost) || (std::is_signed_v<T> && length > 0);
      made |= u64(isThere && (u64(a) >> from & 1)) << i;
    }
    return T(made);
  };
  check3<u32, u32, u32, u32>("bfe.u32 %to, %a, %b, %c;", field);
  check3<i32, i32, u32, u32>("bfe.s32 %to, %a, %b, %c;", field);
  check3<u64, u64, u32, u32>("bfe.u64 %to, %a, %b, %c;", field);
  check3<i64, i64, u32, u32>("bfe.s64 %to, %a, %b, %c;", field);
  check2<u32, u32, u32>("bfi.b32 %to, %a, %b, 8, 4;",
                        [](u32 a, u32 b) { return (b & ~0xf00u) | (a & 15) << 8; });
  check2<u32, u32, u32>("prmt.b32 %to, %a, %b, 0x5410;", [](u32 a, u32 b) { return (a & 0xffff) | b << 16; });
  check2<u32, u32, u32>("prmt.b32 %to, %a, %b, 0x8a76;", [](u32 a, u32 b) {
    u32 third = a >> 16 & 0x80 ? 255 : 0, first = a & 0x80 ? 255 : 0;
    return (b >> 16 & 255) | (b >> 24) << 8 | third << 16 | first << 24;
  });
  check3<u32, u32, u32, u32>("shf.l.wrap.b32 %to, %a, %b, %c;",
                             [](u32 a, u32 b, u32 c) { return u32((u64(b) << 32 | a) << (c & 31) >> 32); });
  check3<u32, u32, u32, u32>("shf.r.clamp.b32 %to, %a, %b, %c;",
                             [](u32 a, u32 b, u32 c) { return u32((u64(b) << 32 | a) >> std::min(c, 32u)); });
  check3<u32, u32, u32, u32>("lop3.b32 %to, %a, %b, %c, 0xe4;",
                             [](u32 a, u32 b, u32 c) { return (c & a) | (~c & b); });
}

TEST_F(Instruction, Floats) {
  auto ignoringNaN = [](float a, float b, bool larger) {
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? b : a;
    if (a == b)
      return std::signbit(a) == larger ? b : a;
    return (a > b) == larger ? a : b;
  };
  check2<float, float, float>("add.rn.f32 %to, %a, %b;", [](float a, float b) { return a + b; });
  check2<float, float, float>("add.f32 %to, %a, %b;", [](float a, float b) { return a + b; });
  check2<double, double, double>("mul.rn.f64 %to, %a, %b;", [](double a, double b) { return a * b; });
  check2<float, float, float>("sub.ftz.f32 %to, %a, %b;",
                              [](float a, float b) { return flush(flush(a) - flush(b)); });
  check3<float, float, float, float>("fma.rn.f32 %to, %a, %b, %c;",
                                     [](float a, float b, float c) { return std::fma(a, b, c); });
  check2<float, float, float>("div.rn.f32 %to, %a, %b;", [](float a, float b) { return a / b; });
  check1<float, float>("sqrt.rn.f32 %to, %a;", [](float a) { return std::sqrt(a); });
  check1<float, float>("neg.f32 %to, %a;", [](float a) { return -a; });
  check1<float, float>("abs.f32 %to, %a;", [](float a) { return std::fabs(a); });
  check2<float, float, float>("max.f32 %to, %a, %b;",
                              [&](float a, float b) { return ignoringNaN(a, b, true); });
  check2<float, float, float>("min.f32 %to, %a, %b;",
                              [&](float a, float b) { return ignoringNaN(a, b, false); });
  check2<float, float, float>("max.NaN.f32 %to, %a, %b;", [&](float a, float b) {
    return std::isnan(a + 0 * b) && (std::isnan(a) || std::isnan(b)) ? kNaN : ignoringNaN(a, b, true);
  });
  check2<float, float, float>("add.sat.f32 %to, %a, %b;", [](float a, float b) {
    float sum = a + b;
    return std::isnan(sum) || sum <= 0 ? 0 : std::min(sum, 1.0f);
  });
  check2<float, float, float>("copysign.f32 %to, %a, %b;",
                              [](float a, float b) { return std::copysign(b, a); });
  check1<float, float>("ex2.approx.ftz.f32 %to, %a;", [](float a) { return flush(std::exp2(flush(a))); });
  check1<float, float>("lg2.approx.ftz.f32 %to, %a;", [](float a) { return flush(std::log2(flush(a))); });
  check1<float, float>("rsqrt.approx.ftz.f32 %to, %a;",
                       [](float a) { return flush(1.0f / std::sqrt(flush(a))); });
  // Roundings by hand: 1 + 2^-30 is between 1 and the next float.
  std::vector<float> one(kLanes, 1), small(kLanes, 0x1p-30f);
  auto add = [&](const std::string &mode, float sign) {
    std::vector<float> a = one, b = small;
    for (float &value : a)
      value *= sign;
    for (float &value : b)
      value *= sign;
    return run<float>("add." + mode + ".f32 %to, %a, %b;", a, b, small)[5];
  };
  float next = 1 + 0x1p-23f;
  EXPECT_EQ(add("rn", 1), 1);
  EXPECT_EQ(add("rz", 1), 1);
  EXPECT_EQ(add("rm", 1), 1);
  EXPECT_EQ(add("rp", 1), next);
  EXPECT_EQ(add("rm", -1), -next);
  EXPECT_EQ(add("rp", -1), -1);
  EXPECT_EQ(run<float>("fma.rm.f32 %to, %a, %a, %b;", one, std::vector<float>(kLanes, -0x1p-30f), one)[3],
            1 - 0x1p-24f);
}

TEST_F(Instruction, ShortFloats) {
  auto half = [](float value) { return toF16(value); };
  // 1 + 2^-11 is in the middle between two, and goes to the even one.
  EXPECT_EQ(half(1 + 0x1p-11f), half(1));
  EXPECT_EQ(half(1 + 3 * 0x1p-11f), 0x3c02);
  EXPECT_EQ(half(65519), 0x7bff);
  EXPECT_EQ(half(65520), 0x7c00);
  EXPECT_EQ(half(0x1p-24f), 1);
  EXPECT_EQ(half(0x1p-25f), 0);
  EXPECT_EQ(half(-0x1.8p-24f), 0x8002);
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float f16 = fromF16(bits), bf16 = fromBF16(bits);
    EXPECT_EQ(toF16(f16), std::isnan(f16) ? 0x7fff : bits);
    EXPECT_EQ(toBF16(bf16), std::isnan(bf16) ? 0x7fff : bits);
    if (int exponent = bits >> 10 & 31; exponent != 31) {
      float magnitude = std::ldexp(float(bits & 1023) + (exponent ? 1024 : 0), std::max(exponent, 1) - 25);
      EXPECT_TRUE(same(f16, bits & 0x8000 ? -magnitude : magnitude)) << bits;
    }
  }
  check2<u16, u16, u16>("add.rn.bf16 %to, %a, %b;",
                        [](u16 a, u16 b) { return toBF16(fromBF16(a) + fromBF16(b)); });
  check2<u16, u16, u16>("add.rn.f16 %to, %a, %b;",
                        [](u16 a, u16 b) { return toF16(fromF16(a) + fromF16(b)); });
  check2<u16, u16, u16>("mul.f16 %to, %a, %b;", [](u16 a, u16 b) { return toF16(fromF16(a) * fromF16(b)); });
  check3<u32, u32, u32, u32>("fma.rn.bf16x2 %to, %a, %b, %c;", [](u32 a, u32 b, u32 c) {
    u32 made = 0;
    for (int i = 0; i < 32; i += 16) {
      long double exact = (long double)fromBF16(a >> i) * fromBF16(b >> i) + fromBF16(c >> i);
      float narrow = static_cast<float>(exact);
      // The samples have no sums in the middle of two bf16 values but where fp32 holds them.
      made |= u32(toBF16(narrow)) << i;
    }
    return made;
  });
}

TEST_F(Instruction, Conversions) {
  check1<u64, u32>("cvt.u64.u32 %to, %a;", [](u32 a) { return u64(a); });
  check1<i64, i32>("cvt.s64.s32 %to, %a;", [](i32 a) { return i64(a); });
  check1<u32, u64>("cvt.u32.u64 %to, %a;", [](u64 a) { return u32(a); });
  check1<u16, u32>("cvt.u16.u32 %to, %a;", [](u32 a) { return u16(a); });
  check1<u16, u64>("cvt.u16.u64 %to, %a;", [](u64 a) { return u16(a); });
  check1<u32, u16>("cvt.u32.u16 %to, %a;", [](u16 a) { return u32(a); });
  check1<i32, u16>("cvt.s32.s16 %to, %a;", [](u16 a) { return i32(int16_t(a)); });
  check1<u64, u16>("cvt.u64.u16 %to, %a;", [](u16 a) { return u64(a); });
  check1<i64, u16>("cvt.s64.s16 %to, %a;", [](u16 a) { return i64(int16_t(a)); });
  check1<i64, u32>("cvt.s64.u32 %to, %a;", [](u32 a) { return i64(a); });
  check1<u64, i32>("cvt.u64.s32 %to, %a;", [](i32 a) { return u64(i64(a)); });
  check1<double, i32>("cvt.rn.f64.s32 %to, %a;", [](i32 a) { return double(a); });
  check1<double, u32>("cvt.rn.f64.u32 %to, %a;", [](u32 a) { return double(a); });
  check1<double, i64>("cvt.rn.f64.s64 %to, %a;", [](i64 a) { return double(a); });
  check1<i32, i32>("cvt.s32.s8 %to, %a;", [](i32 a) { return i32(int8_t(a)); });
  check1<u32, u32>("cvt.u32.u16 %to, %a;", [](u32 a) { return a & 0xffff; });
  check1<i32, i32>("cvt.sat.s8.s32 %to, %a;", [](i32 a) { return std::clamp(a, -128, 127); });
  check1<float, i32>("cvt.rn.f32.s32 %to, %a;", [](i32 a) { return float(a); });
  check1<float, u64>("cvt.rn.f32.u64 %to, %a;", [](u64 a) { return float(a); });
  check1<i32, float>("cvt.rzi.s32.f32 %to, %a;", [](float a) {
    return std::isnan(a) ? 0 : a >= 0x1p31f ? INT32_MAX : a < -0x1p31f ? INT32_MIN : i32(a);
  });
  check1<u32, float>("cvt.rni.u32.f32 %to, %a;", [](float a) {
    return std::isnan(a) || a <= 0 ? 0 : a >= 0x1p32f ? ~0u : u32(std::nearbyint(double(a)));
  });
  check1<i64, float>("cvt.rmi.s64.f32 %to, %a;", [](float a) {
    return a >= 0x1p63f    ? INT64_MAX
           : a < -0x1p63f  ? INT64_MIN
           : std::isnan(a) ? INT64_MIN
                           : i64(std::floor(a));
  });
  check1<float, float>("cvt.rpi.f32.f32 %to, %a;",
                       [](float a) { return std::isnan(a) ? kNaN : std::ceil(a); });
  check1<float, float>("cvt.sat.f32.f32 %to, %a;",
                       [](float a) { return std::isnan(a) || a <= 0 ? 0 : std::min(a, 1.0f); });
  check1<u16, float>("cvt.rn.bf16.f32 %to, %a;", [](float a) { return toBF16(a); });
  check1<u16, float>("cvt.rn.f16.f32 %to, %a;", [](float a) { return toF16(a); });
  check1<u16, float>("cvt.rz.bf16.f32 %to, %a;",
                     [](float a) { return std::isnan(a) ? u16(0x7fff) : u16(bitsOf<u32>(a) >> 16); });
  check1<float, u16>("cvt.f32.bf16 %to, %a;", [](u16 a) { return fromBF16(a); });
  check1<double, float>("cvt.f64.f32 %to, %a;", [](float a) { return double(a); });
  check1<float, double>("cvt.rn.f32.f64 %to, %a;", [](double a) { return float(a); });
  check1<float, u16>("cvt.f32.f16 %to, %a;", [](u16 a) { return fromF16(a); });
  check2<u32, float, float>("cvt.rn.f16x2.f32 %to, %a, %b;",
                            [](float a, float b) { return u32(toF16(a)) << 16 | toF16(b); });
  check2<u32, float, float>("cvt.rn.bf16x2.f32 %to, %a, %b;",
                            [](float a, float b) { return u32(toBF16(a)) << 16 | toBF16(b); });
}

TEST_F(Instruction, ComparisonsAndChoices) {
  auto setp = [](const std::string &compare) {
    return "setp." + compare + " %p, %a, %b; selp.b32 %to, 1, 0, %p;";
  };
  check2<u32, i32, i32>(setp("lt.s32"), [](i32 a, i32 b) { return u32(a < b); });
  check2<u32, u32, u32>(setp("hi.u32"), [](u32 a, u32 b) { return u32(a > b); });
  check2<u32, float, float>(setp("ne.f32"), [](float a, float b) { return u32(a < b || a > b); });
  check2<u32, float, float>(setp("neu.f32"), [](float a, float b) { return u32(a != b); });
  check2<u32, float, float>(setp("ltu.f32"), [](float a, float b) { return u32(!(a >= b)); });
  check2<u32, float, float>(setp("num.f32"),
                            [](float a, float b) { return u32(!std::isnan(a) && !std::isnan(b)); });
  check2<u32, u16, u16>(setp("ge.bf16"), [](u16 a, u16 b) { return u32(fromBF16(a) >= fromBF16(b)); });
  check2<u32, i32, i32>("setp.lt.s32 %q, %a, 0; setp.gt.and.s32 %p|%q, %a, %b, !%q; selp.b32 %to, 1, 0, %p; "
                        "@%q add.u32 %to, %to, 2;",
                        [](i32 a, i32 b) { return u32((a > b && a >= 0) | (!(a > b) && a >= 0) << 1); });
  check2<float, float, i32>("setp.ge.s32 %p, %b, 0; selp.f32 %to, %a, 0f3F800000, %p;",
                            [](float a, i32 b) { return b >= 0 ? a : 1; });
  check2<u32, i32, i32>("mov.b32 %to, 5; setp.eq.s32 %p, %a, %b; @!%p mov.b32 %to, 7;",
                        [](i32 a, i32 b) { return a == b ? 5u : 7u; });
}

TEST_F(Instruction, Lanes) {
  std::vector<u32> a(kLanes), zero(kLanes);
  for (int i = 0; i < kLanes; ++i)
    a[i] = 100 + i;
  auto shuffled = [&](const std::string &kind, const std::string &by, const std::string &control) {
    return run<u32>("shfl.sync." + kind + ".b32 %to|%p, %a, " + by + ", " + control +
                        ", -1; @!%p add.u32 %to, %to, 1000;",
                    a, zero, zero);
  };
  auto expect = [&](const std::vector<u32> &made, auto expected) {
    for (int lane = 0; lane < kLanes; ++lane)
      EXPECT_EQ(made[lane], expected(lane)) << lane;
  };
  expect(shuffled("bfly", "5", "31"), [](int lane) { return 100u + (lane ^ 5); });
  expect(shuffled("down", "4", "31"), [](int lane) { return lane + 4 < 32 ? 104u + lane : 1100u + lane; });
  expect(shuffled("up", "4", "0"), [](int lane) { return lane >= 4 ? 96u + lane : 1100u + lane; });
  // In parts of 8 lanes.
  expect(shuffled("idx", "3", "0x181f"), [](int lane) { return 103u + lane / 8 * 8; });
  expect(shuffled("down", "2", "0x181f"), [](int lane) { return lane % 8 < 6 ? 102u + lane : 1100u + lane; });
  expect(run<u32>("setp.gt.u32 %p, %a, 110; vote.sync.ballot.b32 %to, %p, -1;", a, zero, zero),
         [](int) { return 0xfffff800u; });
  expect(run<u32>("setp.gt.u32 %p, %a, 110; vote.sync.any.pred %q, %p, -1; selp.b32 %to, 1, 0, %q;", a, zero,
                  zero),
         [](int) { return 1u; });
  expect(run<u32>("redux.sync.add.u32 %to, %a, -1;", a, zero, zero), [](int) { return 32u * 100 + 31 * 16; });
  expect(run<u32>("and.b32 %b, %a, 3; match.any.sync.b32 %to, %b, -1;", a, zero, zero),
         [](int lane) { return 0x11111111u << lane % 4; });
  expect(run<u32>("mov.u32 %to, %lanemask_lt;", a, zero, zero), [](int lane) { return (1u << lane) - 1; });
}

TEST_F(Instruction, TextThatIsNoPTX) {
  auto said = [&](const std::string &body) -> std::string {
    try {
      Program program(
          memory,
          ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<3>;\n" + body +
              "\n}\n");
      program.kernel("k");
    } catch (const SyntaxError &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said("ret;"), "");
  EXPECT_NE(said("add.s32 %r1, %r2").find("PTX line 8: got '}', expected ',' or ';'"), std::string::npos);
  EXPECT_NE(said("mov.u32 %r1, %r9;").find("'%r9' is no register"), std::string::npos);
  EXPECT_NE(said("bra $L;").find("there is no label '$L'"), std::string::npos);
  EXPECT_NE(said("@%r1 ret;").find("'%r1' is no predicate"), std::string::npos);
  EXPECT_NE(said("ld.global.b32 %r1, [x];").find("'x' is not declared"), std::string::npos);
  EXPECT_NE(said(".shared .b32 a.b;").find("'a.b' is no name"), std::string::npos);
  EXPECT_NE(said("mov.u32 %r1, 0f12;").find("'0f12' is no number"), std::string::npos);
}
