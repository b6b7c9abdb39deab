//===- AccessTest.cpp - what accesses of whole warps may not hide ----------===//
//
// Accesses of lanes that follow each other, or that were noted before, pass at once. One
// lane, one byte or one unit among them that is wrong has to be found as if each were on
// its own, and what is not wrong has to pass.
//
//===----------------------------------------------------------------------===//

#include "Machine/Program.h"
#include "Machine/Warp.h"

#include <gtest/gtest.h>
#include <set>

using namespace softdevice;

namespace {
class Access : public testing::Test {
protected:
  Memory memory{16 << 20};

  /// Room whose first bytes were written.
  uint64_t room(uint64_t bytes, uint64_t written = 0) {
    uint64_t address = memory.allocate(bytes, "an allocation");
    if (written)
      std::memset(memory.reach(address, written, false, true, "upload"), 1, written);
    return address;
  }

  /// What a launch says where each thread has %x = x + step * its number in the block, %p whether its lane is
  /// among `lanes`, and %block, %warp and %lane; empty if it ends well.
  std::string run(const std::string &text, uint64_t x, uint32_t lanes = ~0u, uint32_t blocks = 1,
                  uint32_t threads = 32, uint32_t step = 4, uint64_t seed = 1) {
    std::string kernel =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .b64 px, .param .b32 lanes, "
        ".param .b32 step)\n{\n.reg .pred %p, %q; .reg .b32 %lanes, %lane, %warp, %block, %thread, %v, %w, "
        "%s; .reg .b16 %h; .reg .b64 %x, %y, %step, %base; .reg .b32 %a0, %a1, %a2, %a3;\n"
        ".shared .align 16 .b8 s[128]; .local .align 4 .b8 l[4];\n"
        "ld.param.b64 %base, [px]; ld.param.b32 %lanes, [lanes]; ld.param.b32 %v, [step];\n"
        "mov.b32 %thread, %tid.x; mov.b32 %block, %ctaid.x; and.b32 %lane, %thread, 31;\n"
        "shr.u32 %warp, %thread, 5; mul.wide.u32 %step, %thread, %v; add.s64 %x, %base, %step;\n"
        "shr.u32 %w, %lanes, %lane; and.b32 %w, %w, 1; setp.ne.b32 %p, %w, 0;\n"
        "shl.b32 %w, %lane, 2; mov.b32 %s, s; add.s32 %s, %s, %w; mov.b16 %h, 7;\n" +
        text + "\nret;\n}\n";
    Program program(memory, kernel);
    EXPECT_EQ(program.kernel("k")->unsupported, std::vector<std::string>());
    std::string parameters(16, 0);
    std::memcpy(&parameters[0], &x, 8);
    std::memcpy(&parameters[8], &lanes, 4);
    std::memcpy(&parameters[12], &step, 4);
    std::mt19937_64 random(seed);
    Grid grid{*program.kernel("k"), memory, parameters.data(), {blocks, 1, 1}, {threads, 1, 1}, 0, random};
    try {
      runGrid(grid);
    } catch (const Fault &fault) {
      return fault.what();
    }
    return "";
  }
};

void says(const std::string &said, std::initializer_list<const char *> words) {
  for (const char *word : words)
    EXPECT_NE(said.find(word), std::string::npos) << word << " is not in: " << said;
}
} // namespace

static constexpr const char *kLoad = "@%p ld.global.b32 %v, [%x];", *kStore = "@%p st.global.b32 [%x], %v;";

TEST_F(Access, ARowEndsWhereItsAllocationEnds) {
  for (const char *text : {kLoad, kStore}) {
    uint64_t whole = room(128, 128), short1 = room(127, 127), first = room(128, 128);
    EXPECT_EQ(run(text, whole), "");
    says(run(text, short1),
         {"4 bytes reaches 1 bytes past the end of an allocation of 127", "thread (31,0,0)"});
    EXPECT_EQ(run(text, short1, ~0u >> 1), "");
    says(run(text, short1, 0xff0000ff), {"1 bytes past the end", "thread (31,0,0)"});
    // One before the first lane's.
    says(run(text, first - 4), {"not allocated", "thread (0,0,0)"});
    EXPECT_EQ(run(text, first - 4, ~1u), "");
    says(run(text, first + 2), {"no multiple", "thread (0,0,0)"});
    says(run(text, first + 2, 0xfff0), {"no multiple", "thread (4,0,0)"});
  }
  // Vectors: each lane has 16 bytes.
  for (const char *text : {"@%p ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%x]; mov.b32 %w, %a3;",
                           "@%p st.global.v4.b32 [%x], {%v, %v, %v, %v};"}) {
    uint64_t wide = room(511, 511);
    says(run(text, wide, ~0u, 1, 32, 16), {"1 bytes past the end", "thread (31,0,0)"});
    EXPECT_EQ(run(text, wide, ~0u >> 1, 1, 32, 16), "");
    says(run(text, wide + 4, ~0u >> 1, 1, 32, 16), {"no multiple", "thread (0,0,0)"});
  }
}

TEST_F(Access, AByteThatNobodyWroteIsFoundInARow) {
  std::string before = "@%p ld.global.b32 %v, [%x];";
  for (int missing : {0, 3, 37, 71, 127}) {
    uint64_t x = room(128, 128);
    // What lanes of one byte write, but one.
    uint64_t y = room(128);
    std::string bytes =
        "setp.ne.u32 %q, %thread, " + std::to_string(missing) + ";\n@%q st.global.b8 [%x], %h;";
    EXPECT_EQ(run(bytes, y, ~0u, 1, 128, 1), "");
    EXPECT_EQ(run(before, x), "");
    std::string lane = "thread (" + std::to_string(missing / 4) + ",0,0)",
                place = "at byte " + std::to_string(missing) + " of an allocation of 128";
    says(run(before, y), {"a global read of 4 bytes that nobody wrote", place.c_str(), lane.c_str()});
    EXPECT_EQ(run(before, y, ~(1u << missing / 4)), "");
    // All lanes at one place.
    says(run("ld.global.b32 %v, [%base+" + std::to_string(missing / 4 * 4) + "];", y),
         {"nobody wrote", "thread (0,0,0)"});
  }
  // A row of some lanes writes what they have, and no more.
  uint64_t z = room(128);
  EXPECT_EQ(run(kStore, z, 0x00ffff00), "");
  EXPECT_EQ(run(kLoad, z, 0x00ffff00), "");
  says(run(kLoad, z, 0x00ffff80), {"nobody wrote", "thread (7,0,0)"});
  says(run(kLoad, z, 0x01ffff00), {"nobody wrote", "thread (24,0,0)"});
}

TEST_F(Access, OneLanesConflictIsFoundInARow) {
  // Block 0 has lane 9 alone, or a byte of it.
  std::string mine = "setp.ne.u32 %q, %block, 0;\n@%q bra all;\n";
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    std::string one = "setp.eq.u32 %q, %lane, 9;\n";
    for (const char *what :
         {"@%q st.global.b32 [%x], %v;\n", "@%q st.global.b8 [%x+2], %h;\n", "@%q st.global.b16 [%x], %h;\n"})
      for (const char *all : {"st.global.b32 [%x], %v;", "ld.global.b32 %v, [%x];"}) {
        std::string text = mine + one + what + "ret;\nall:\n" + all;
        says(run(text, room(128, 128), ~0u, 2, 32, 4, seed),
             {"a race", "of global memory that block", "thread (9,0,0)"});
        EXPECT_EQ(run(text, room(128, 128), ~0u, 1, 32, 4, seed), "");
      }
    // Those who only read are in nobody's way, but in that of a writer.
    std::string read = mine + one + "@%q ld.global.b32 %v, [%x];\nret;\nall:\n";
    EXPECT_EQ(run(read + "ld.global.b32 %v, [%x];", room(128, 128), ~0u, 2, 32, 4, seed), "");
    says(run(read + "st.global.b32 [%x], %v;", room(128, 128), ~0u, 2, 32, 4, seed), {"a race", "(9,0,0)"});
    std::string three = "ld.global.b32 %v, [%x];\nsetp.eq.u32 %q, %block, 2;\n@%q st.global.b32 [%x], %v;";
    says(run(three, room(128, 128), ~0u, 3, 32, 4, seed),
         {"a race", "with nothing between", "thread (0,0,0)"});
    // Parts of one word may be several blocks', as long as they are not the same.
    std::string parts = "cvt.u64.u32 %step, %block; add.s64 %x, %x, %step;\nst.global.b8 [%x], %h;";
    EXPECT_EQ(run(parts, room(128, 128), ~0u, 4, 32, 4, seed), "");
    says(run(parts, room(132, 132), ~0u, 5, 32, 4, seed), {"a race", "writes with nothing between"});
    // A row behind the halves that another block has.
    std::string halves = mine + "st.global.b16 [%x], %h;\nret;\nall:\nst.global.b16 [%x+2], %h;";
    EXPECT_EQ(run(halves, room(128, 128), ~0u, 2, 32, 4, seed), "");
  }
}

TEST_F(Access, WhatWasNotedBeforeHidesNoOneElse) {
  std::string second = "setp.ne.u32 %q, %warp, 0;\n";
  for (uint64_t seed = 1; seed <= 6; ++seed)
    for (const char *text : {// Warp 1 writes what warp 0, or both, read again and again.
                             "ld.global.b32 %v, [%y];\nld.global.b32 %v, [%y];\n@%q st.global.b32 [%y], %v;",
                             "@%q bra other;\nld.global.b32 %v, [%y];\nld.global.b32 %v, "
                             "[%y];\nret;\nother:\nst.global.b32 [%y], %v;",
                             "@%q bra other;\nst.global.b32 [%y], %v;\nst.global.b32 [%y], "
                             "%v;\nret;\nother:\nld.global.b32 %v, [%y];",
                             "@%q bra other;\nst.global.b32 [%y], %v;\nst.global.b32 [%y], "
                             "%v;\nret;\nother:\nst.global.b32 [%y], %v;"}) {
      std::string place = "mul.wide.u32 %step, %lane, 4; add.s64 %y, %base, %step;\n";
      says(run(second + place + text, room(128, 128), ~0u, 1, 64, 4, seed),
           {"a race", "of global memory that"});
      EXPECT_EQ(run(second + place + text, room(128, 128), ~0u, 1, 32, 4, seed), "");
      std::string shared = text;
      for (size_t at; (at = shared.find("global")) != std::string::npos;)
        shared.replace(at, 6, "shared");
      for (size_t at; (at = shared.find("%y")) != std::string::npos;)
        shared.replace(at, 2, "%s");
      shared = second + "mov.b32 %v, 5;\n@!%q st.shared.b32 [%s], %v;\nbar.sync 0;\n" + shared;
      says(run(shared, room(128), ~0u, 1, 64, 4, seed), {"a race", "of shared memory that"});
      EXPECT_EQ(run(shared, room(128), ~0u, 1, 32, 4, seed), "");
    }
}

TEST_F(Access, BarriersBlocksAndLaunchesBeginAnew) {
  std::string both =
      "mul.wide.u32 %step, %lane, 4; add.s64 %y, %base, %step;\nsetp.ne.u32 %q, %warp, 0;\n"
      "@%q st.global.b32 [%y], %v;\nbar.sync 0;\n@!%q ld.global.b32 %v, [%y];\n@!%q st.global.b32 [%y], %v;"
      "\nbar.sync 0;\n@%q st.global.b32 [%y], %v;";
  uint64_t x = room(128, 128);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    EXPECT_EQ(run(both, x, ~0u, 1, 64, 4, seed), "");
    // One block after the other has other threads' places in each launch.
    EXPECT_EQ(run("cvt.u64.u32 %y, %block; mad.lo.s64 %x, %y, 128, %x; st.global.b32 [%x], %v;",
                  room(512, 512), ~0u, 4, 32, 4, seed),
              "");
  }
  // Stamps begin anew, too, where there are no more.
  memory.time = ~0u / 2 - 3 * kStampsOfTime;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(run(both, x, ~0u, 1, 64), "");
    EXPECT_EQ(run(kStore, x), "");
    says(run("st.global.b32 [%x], %v;", x, ~0u, 2), {"a race"});
  }
  EXPECT_LT(memory.time, 1u << 20);
  memory.time = ~0u - kStampsOfTime;
  EXPECT_THROW(memory.nextTime(), Fault);
}

TEST_F(Access, SharedRowsAreAsExact) {
  uint64_t x = room(128, 128);
  says(run("ld.shared.b32 %v, [%s];", x), {"shared memory that nobody wrote", "thread (0,0,0)"});
  std::string fill =
      "setp.ne.u32 %q, %lane, 17;\n@%q st.shared.b32 [%s], %v;\n@!%q st.shared.b16 [%s], %h;\n";
  says(run(fill + "ld.shared.b32 %v, [%s];", x), {"nobody wrote", "thread (17,0,0)"});
  EXPECT_EQ(run(fill + "@%q ld.shared.b32 %v, [%s];", x), "");
  says(run(fill + "@!%q st.shared.b8 [%s+2], %h;\nld.shared.b32 %v, [%s];", x), {"nobody wrote", "(17,0,0)"});
  EXPECT_EQ(run(fill + "@!%q st.shared.b16 [%s+2], %h;\nld.shared.b32 %v, [%s];", x), "");
  says(run("st.shared.b32 [%s+4], %v;", x), {"past the end of a variable", "thread (31,0,0)"});
  EXPECT_EQ(run("@%p st.shared.b32 [%s+4], %v;", x, ~0u >> 1), "");
  says(run("st.shared.b32 [%s+2], %v;", x), {"no multiple", "thread (0,0,0)"});
  // A block finds nothing of the one before.
  says(
      run("setp.eq.u32 %q, %block, 0;\n@%q st.shared.b32 [%s], %v;\n@!%q ld.shared.b32 %v, [%s];", x, ~0u, 2),
      {"nobody wrote"});
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    // Warp 0 writes one lane's, or a byte of it, and warp 1 all.
    std::string one = "setp.ne.u32 %q, %warp, 0;\n@%q bra all;\nsetp.eq.u32 %q, %lane, 9;\n";
    for (const char *what : {"@%q st.shared.b32 [%s], %v;", "@%q st.shared.b8 [%s+3], %h;"})
      says(run(one + what + "\nret;\nall:\nst.shared.b32 [%s], %v;", x, ~0u, 1, 64, 4, seed),
           {"a race", "of shared memory that warp", ",0,0), PTX line"});
    // Halves of words are two warps'.
    EXPECT_EQ(run("setp.ne.u32 %q, %warp, 0;\n@%q st.shared.b16 [%s+2], %h;\n@!%q st.shared.b16 [%s], %h;", x,
                  ~0u, 1, 64, 4, seed),
              "");
  }
}

TEST_F(Access, RowsGoOnOverPagesAndMayBeNarrow) {
  // Notes are kept in pages of 4096 bytes: lane 14 is the last in the first one.
  std::string one = "setp.ne.u32 %q, %block, 0;\n@%q bra all;\nsetp.eq.u32 %q, %lane, ";
  for (uint64_t seed = 1; seed <= 4; ++seed)
    for (const char *lane : {"14", "15", "31"})
      for (const char *all : {"st.global.b32 [%x], %v;", "ld.global.b32 %v, [%x];"}) {
        std::string text = one + lane + ";\n@%q st.global.b32 [%x], %v;\nret;\nall:\n" + all;
        says(run(text, room(8192, 8192) + 4096 - 60, ~0u, 2, 32, 4, seed),
             {"a race", ("thread (" + std::string(lane) + ",0,0)").c_str()});
      }
  EXPECT_EQ(run("st.global.b32 [%x], %v; ld.global.b32 %v, [%x];", room(8192) + 4096 - 60), "");
  // Three lanes of two bytes; one of the six was not written.
  for (int missing = 0; missing < 6; ++missing) {
    uint64_t x = room(6);
    EXPECT_EQ(run("setp.ne.u32 %q, %thread, " + std::to_string(missing) + ";\n@%q st.global.b8 [%x], %h;", x,
                  ~0u, 1, 6, 1),
              "");
    says(run("@%p ld.global.b16 %h, [%x];", x, 7, 1, 32, 2),
         {"nobody wrote", ("thread (" + std::to_string(missing / 2) + ",0,0)").c_str()});
  }
}

TEST_F(Access, EachLaneGetsItsOwn) {
  // What a thread finds is not its number: a trap. Several blocks, as the first access of an operation is
  // none of those that pass at once.
  auto runs = [&](const std::string &text, uint32_t lanes = ~0u, uint32_t step = 4) {
    EXPECT_EQ(
        run("cvt.u64.u32 %y, %block; mad.lo.s64 %base, %y, 128, %base; mad.lo.s64 %x, %y, 128, %x;\n" + text,
            room(3 * 128), lanes, 3, 32, step),
        "")
        << text;
  };
  std::string own = "setp.ne.u32 %q, %v, %thread;\n@%q trap;", mine = "st.global.b32 [%x], %thread;\n";
  runs("st.local.b32 [l], %thread; ld.local.b32 %v, [l];\n" + own);
  runs("mov.b64 %y, l; cvta.local.u64 %y, %y; st.b32 [%y], %thread; ld.b32 %v, [%y];\n" + own);
  runs("@%p st.global.b32 [%x], %thread;\n@%p ld.global.b32 %v, [%x];\n@!%p mov.b32 %v, %thread;\n" + own,
       0x0ff0ff00);
  // Neighbours change places in the middle of a row; lanes 8 to 11, or the first and the last, share one.
  std::string at = "mul.wide.u32 %step, %w, 4; add.s64 %y, %base, %step;\n";
  std::string swap =
      "xor.b32 %w, %thread, 1; and.b32 %v, %thread, 28;\nsetp.eq.u32 %q, %v, 16; selp.b32 %w, %w, "
      "%thread, %q;\n" +
      at;
  std::string back = "setp.ne.u32 %q, %v, %w;\n@%q trap;";
  runs(swap + mine + "ld.global.b32 %v, [%y];\n" + back);
  runs(swap + "st.global.b32 [%y], %w; ld.global.b32 %v, [%y];\n" + back);
  runs(mine + "and.b32 %v, %thread, 28; setp.eq.u32 %q, %v, 8; selp.b32 %w, 8, %thread, %q;\n" + at +
       "ld.global.b32 %v, [%y];\n" + back);
  runs(mine + "setp.eq.u32 %q, %thread, 31; selp.b32 %w, 0, %thread, %q;\n" + at +
       "ld.global.b32 %v, [%y];\n" + back);
  for (const char *lanes : {"3", "7", "15", "30"})
    runs(mine + "and.b32 %w, %thread, " + lanes + ";\n" + at + "ld.global.b32 %v, [%y];\n" + back);
  runs(mine + "ld.global.b32 %v, [%base+20];\nsetp.ne.u32 %q, %v, 5;\n@%q trap;");
  // Into wider registers, with the sign and without.
  runs("mov.b16 %h, -3; st.global.b8 [%x], %h; ld.global.s8 %v, [%x]; setp.ne.s32 %q, %v, -3;\n@%q trap;\n"
       "ld.global.u8 %v, [%x]; setp.ne.s32 %q, %v, 253;\n@%q trap;\nld.global.s8 %v, [%base]; setp.ne.s32 "
       "%q, %v, -3;\n@%q trap;",
       ~0u, 1);
}

TEST_F(Access, OneLaneIsMisaligned) {
  for (const char *text : {kLoad, kStore}) {
    says(run("setp.eq.u32 %q, %lane, 5;\n@%q add.s64 %x, %x, 2;\n" + std::string(text), room(128, 128)),
         {"no multiple", "thread (5,0,0)"});
    // Of all lanes, where the operation was in the allocation before.
    for (uint64_t seed = 1; seed <= 6; ++seed)
      says(run("setp.eq.u32 %q, %block, 1;\n@%q add.s64 %x, %x, 130;\n" + std::string(text), room(512, 512),
               ~0u, 2, 32, 4, seed),
           {"no multiple", "block (1,0,0) thread (0,0,0)"});
  }
}

TEST_F(Access, LanesThatTakeNoPartTouchNothing) {
  // Some blocks read half of a row, others write the other half.
  for (uint64_t seed = 1; seed <= 6; ++seed)
    for (const char *access :
         {"@%p ld.global.b32 %v, [%x];\nret;", "@%p ld.global.v2.b32 {%a0, %a1}, [%y];\nmov.b32 "
                                               "%v, %a0; mov.b32 %v, %a1;\nret;"})
      EXPECT_EQ(
          run("mul.wide.u32 %step, %lane, 8; add.s64 %y, %base, %step;\nsetp.gt.u32 %q, %block, 2;\n@%q bra "
              "others;\n" +
                  std::string(access) +
                  "\nothers:\ncvt.u64.u32 %y, %block; mad.lo.s64 %x, %y, 64, %x;\n"
                  "st.global.b32 [%x-128], %v;",
              room(512, 512), 0xff, 6, 16, 4, seed),
          "");
}

TEST_F(Access, FootprintsMeetWhereTheirBytesDo) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    Footprint prints[2];
    std::set<uint64_t> chunks[2][2];
    for (int which : {0, 1})
      for (int i = 0; i < 4; ++i) {
        bool isWrite = random() % 2;
        uint64_t address = 1 << 20 | (random() % 64 * 256), bits = 0;
        if (random() % 2) {
          uint64_t bytes = 1 + random() % 9000;
          address += random() % 64;
          prints[which].add(address, bytes, isWrite);
          for (uint64_t at = address; at < address + bytes; ++at)
            chunks[which][isWrite].insert(at / Footprint::kChunk);
        } else {
          bits = uint64_t(random()) << 32 | random();
          // Of memory of the host that begins anywhere.
          address += random() % 2 ? 0 : random() % 64;
          prints[which].addChunks(address, bits, isWrite);
          for (int bit = 0; bit < 64; ++bit)
            for (uint64_t at : {address, address + Footprint::kChunk - 1})
              if (bits >> bit & 1)
                chunks[which][isWrite].insert((at + bit * Footprint::kChunk) / Footprint::kChunk);
        }
      }
    uint64_t expected = 0;
    for (auto [mine, others] : {std::pair(1, 1), {1, 0}, {0, 1}})
      for (uint64_t chunk : chunks[0][mine])
        if (!expected && chunks[1][others].count(chunk))
          expected = chunk * Footprint::kChunk;
    EXPECT_EQ(prints[0].conflict(prints[1]), expected);
  }
}
