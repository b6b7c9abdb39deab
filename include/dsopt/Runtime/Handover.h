//===- Handover.h - one rank of a host makes, the others take ---*- C++ -*-===//
//
// Under a launcher the lowest rank of each host compiles, and the others wait for
// its program. They meet at a socket that the kernel closes with the process that
// listens there: nothing is left behind, a dead compiler is known at once, and
// nobody takes what an earlier job made. The program itself is one file in memory,
// which all of them map.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_HANDOVER_H
#define DSOPT_RUNTIME_HANDOVER_H

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace dsopt::runtime {

class Handover {
public:
  /// Rank `localRank` of the `localSize` of this host; `job` names them, `what` is what they all want made.
  /// Nobody waits longer than `limit` for somebody who does not come.
  Handover(const std::string &job, const std::string &what, int localRank, int localSize,
           std::chrono::seconds limit);
  ~Handover();

  /// Whether this rank is the one that makes it.
  bool makes() const;
  /// The others: the file, as a descriptor that survives exec. A LaunchError if the maker is gone; a quiet
  /// Error if it failed and said so.
  int take();
  /// The maker: all others have the file on return. A LaunchError names those that do not come for it, or
  /// want something else; it is to be said, then told by fail().
  void give(int file);
  /// This rank cannot go on: the maker has said why, and returns when the others know, or after 3 s; the
  /// others tell the maker, which says it. Whether it is said. Nothing where they know already.
  bool fail(int status, const std::string &text);

private:
  class State;
  std::unique_ptr<State> state;
};

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_HANDOVER_H
