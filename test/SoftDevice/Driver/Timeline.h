//===- Timeline.h - work in any order that streams allow --------*- C++ -*-===//
//
// Calls only append nodes: a kernel, a copy, a mark. A node comes after the last one of
// its stream and after what its stream was told to wait for, nothing else. When the
// host waits for something, nodes run in a random order that keeps to that. Two nodes
// that touch the same bytes, one of them writing, and have no order between them are a
// fault, whatever the order in which they happened to run. Some streams are slow, for as
// long as the timeline lives: what they have falls behind all that does not wait for it. A
// node that waits for something outside of the device says so, and others run meanwhile.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_DRIVER_TIMELINE_H
#define DSOPT_TEST_SOFTDEVICE_DRIVER_TIMELINE_H

#include "Machine/Memory.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <random>

namespace softdevice {

/// Does its work and says what it touched.
using Work = std::function<Footprint(std::mt19937_64 &)>;
/// Whether what work waits for outside of the device has come. Asked again and again.
using Ready = std::function<bool()>;

struct Node {
  int64_t number = 0;
  int stream = 0;
  std::string what;
  Work work;
  Ready isReady;                            ///< empty: once all before it is done
  std::vector<std::shared_ptr<Node>> after; ///< until it is done
  int64_t first = 0;                        ///< number of the first of `ancestors`
  std::vector<bool> ancestors;              ///< by number
  bool isDone = false, isKnown = false;     ///< known to the host: all that comes later is after it
  std::chrono::steady_clock::time_point doneAt;
  Footprint footprint;
};

using NodeRef = std::shared_ptr<Node>;

class Timeline {
public:
  explicit Timeline(uint64_t seed) : random(seed) {}

  /// A node of a stream, by its number, after others; nulls are none. What the host knows to be done comes
  /// before it anyway.
  NodeRef append(const std::string &what, const std::vector<NodeRef> &after, int stream, Work work,
                 Ready isReady = {});
  /// Runs nodes until `last` is done, and perhaps others; null: nothing. From then on the host knows it.
  /// Throws a Fault.
  void wait(const NodeRef &last);
  /// Runs everything.
  void waitForAll();
  /// Whether the node happens to be done, after some nodes ran perhaps; the host knows it then.
  bool query(const NodeRef &node);
  /// Nodes that did not run yet.
  size_t pending() const { return waiting.size(); }
  uint64_t draw(uint64_t below) { return random() % below; }

private:
  enum class Ran { One, NoneYet, None };
  /// NoneYet: the slow ones that could do not want to.
  Ran runOne();
  bool isInTheMood(const Node &node);
  void runOneOrPause();
  void run(Node &node);
  void learn(const NodeRef &last);
  bool isAfter(const Node &later, const Node &earlier) const;

  std::mt19937_64 random;
  std::map<int, uint64_t> paces; ///< by stream: a node runs one time in so many
  std::vector<NodeRef> nodes;    ///< all that something may still be compared with
  std::vector<NodeRef> waiting;  ///< not done
  int64_t first = 0, next = 0;   ///< numbers
};

} // namespace softdevice

#endif // DSOPT_TEST_SOFTDEVICE_DRIVER_TIMELINE_H
