//===- AccessMemory.h - what actions do to memories, beside what they say -*- C++ -*-===//
//
// Under DSOPT_CHECK_ACCESSES: a copy of all memories of a rank, which says what they are
// between two actions. An action is run twice: once where all that it does not say it
// touches is poison, and once on what is there. What it does not say it writes has to stay
// as it is both times; what it says it writes has to be the same both times, whatever was there.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_ACCESSMEMORY_H
#define DSOPT_LIB_RUNTIME_CORE_ACCESSMEMORY_H

#include "Core/Accesses.h"
#include "Core/DeviceRank.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dsopt::runtime {

/// What an action does and does not say.
struct AccessFault {
  std::string what;
};

/// What others do with bytes while an action runs.
struct OthersTouch {
  size_t memory;
  int64_t begin, end;
  bool writes; ///< else they read them
};

class AccessMemory {
public:
  /// `memories` are where those of the position begin; `device` is null where the program is for the host.
  AccessMemory(const Position &position, const std::vector<char *> &memories, DeviceRank *device);

  /// Null where the options do not ask for it.
  static std::unique_ptr<AccessMemory> open(const RunOptions &options, const Position &position,
                                            const std::vector<char *> &memories, DeviceRank *device) {
    return options.checkAccesses ? std::make_unique<AccessMemory>(position, memories, device) : nullptr;
  }

  /// Takes what is there as what ought to be.
  void begin();
  /// What an action touches beside others; all but `touches` and what others write stays as it is.
  struct Trial {
    const Position &position; ///< for names
    const std::vector<Touch> &touches;
    const std::vector<OthersTouch> &others;
    std::function<void()> run; ///< does the action and returns when it is done
  };
  /// Runs an action among poison, and leaves what was there but for what it is to write.
  void rehearse(const Trial &trial);
  /// Behind the action's own run. Each throws an AccessFault.
  void compare(const Trial &trial);

  /// The same of an action that cannot be run twice, from where it begins until it is over.
  void launch(const Trial &trial);
  void land(const Trial &trial);
  /// Nothing has changed but what others write.
  void expectNoChange(const Position &position, const std::vector<OthersTouch> &others);

  /// The memory that has an address, and its byte there; a memory that there is not, for addresses of none.
  std::pair<size_t, int64_t> find(const char *address) const;
  size_t size() const { return images.size(); }

private:
  struct Image {
    char *begin = nullptr;
    int64_t bytes = 0;
    bool isOnDevice = false;
    const char *seen = nullptr; ///< what is there: on the host itself, of a device as it was fetched last
    std::vector<char> fetched;
    std::vector<char> kept;  ///< what ought to be there
    std::vector<char> first; ///< what the rehearsal wrote
    std::vector<char> poison, before, beforeAgain;
  };
  struct Span;
  std::vector<Span> spans(const std::vector<Touch> &touches, const std::vector<OthersTouch> &others,
                          size_t memory) const;
  void look(const std::vector<OthersTouch> &others);
  static void keep(Image &image, const Span &span);
  void put(const Image &image, const Span &span, const std::vector<char> &from);
  void placeFor(const Trial &trial, bool poisons, int64_t poisoned);
  [[noreturn]] void differs(const Trial &trial, size_t memory, int64_t at);

  DeviceRank *device;
  std::vector<Image> images;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_ACCESSMEMORY_H
