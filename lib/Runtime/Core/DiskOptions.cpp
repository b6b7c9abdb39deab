//===- DiskOptions.cpp - how a disk is read and written --------------------===//

#include "dsopt/Runtime/Session.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace dsopt::runtime {

/// Of a file, and of memory, that is moved without the page cache: no file system asks for more.
static constexpr int64_t kBlock = 4096;
/// What a request moves at most, and the most requests at once that every kernel with rings allows.
static constexpr int64_t kLongest = 1 << 30, kDeepest = 4096;

DiskOptions diskOptions(const std::string &text) {
  DiskOptions options;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(',', begin), text.size()), equals = text.find('=', begin);
    std::string item = text.substr(begin, end - begin), name = item.substr(0, item.find('='));
    begin = end + 1;
    int64_t *target = name == "block_size"    ? &options.blockSize
                      : name == "queue_depth" ? &options.queueDepth
                                              : nullptr;
    char *rest = nullptr;
    errno = 0;
    long long value = equals < end ? std::strtoll(text.c_str() + equals + 1, &rest, 10) : 0;
    bool isWhole = rest && rest == text.c_str() + end && errno == 0;
    if (!target)
      throw Error(StatusInput, "option -aio: '" + item + "': expected block_size=BYTES or queue_depth=N");
    if (name == "block_size" && (!isWhole || value < kBlock || value > kLongest || value % kBlock))
      throw Error(StatusInput, "option -aio: '" + item + "': expected a multiple of " +
                                   std::to_string(kBlock) + " bytes, at most " + std::to_string(kLongest));
    if (name == "queue_depth" && (!isWhole || value < 1 || value > kDeepest))
      throw Error(StatusInput, "option -aio: '" + item + "': expected 1 to " + std::to_string(kDeepest));
    *target = value;
  }
  return options;
}

} // namespace dsopt::runtime
