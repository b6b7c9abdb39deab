//===- Tiles.cpp - permission to use AMX's tiles --------------------------===//
//
// Linux saves tiles, of which a thread has 8 KiB, only for processes that have asked to use
// them; without its permission their first instruction ends the process. What is allowed
// once holds for all threads and for what the process forks.
//
//===----------------------------------------------------------------------===//

#include "Kernels/CPU/Runtime.h"

#include "dsopt/Runtime/Error.h"

#include <cerrno>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

using namespace dsopt::runtime;

void dsopt::runtime::allowTiles(const std::vector<std::string> &features) {
  if (!hasAll(features, {"amx-tile"}))
    return;
#ifdef SYS_arch_prctl
  // Linux's x86/xstate documentation; older headers lack the first.
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0)
    return;
  throw Error(StatusInput,
              std::string("the program was compiled for AMX, which Linux does not let it use: ") +
                  std::strerror(errno) + "; compile it with an -arch without AMX, as -arch=cooperlake");
#endif
}
