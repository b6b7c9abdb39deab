//===- Timeline.cpp - work in any order that streams allow ----------------===//

#include "Timeline.h"

#include <algorithm>
#include <iterator>
#include <unistd.h>

namespace softdevice {

bool Timeline::isAfter(const Node &later, const Node &earlier) const {
  int64_t place = earlier.number - later.first;
  return place >= 0 && place < static_cast<int64_t>(later.ancestors.size()) && later.ancestors[place];
}

NodeRef Timeline::append(const std::string &what, const std::vector<NodeRef> &after, int stream, Work work,
                         Ready isReady) {
  auto node = std::make_shared<Node>();
  node->number = next++;
  node->stream = stream;
  node->what = what;
  node->work = std::move(work);
  node->isReady = std::move(isReady);
  node->first = first;
  node->ancestors.resize(node->number - first);
  auto include = [&](const Node &earlier) {
    for (size_t i = 0; i < earlier.ancestors.size(); ++i)
      if (int64_t number = earlier.first + static_cast<int64_t>(i); earlier.ancestors[i] && number >= first)
        node->ancestors[number - first] = true;
    if (earlier.number >= first)
      node->ancestors[earlier.number - first] = true;
  };
  for (const NodeRef &earlier : after)
    if (earlier) {
      include(*earlier);
      if (!earlier->isDone)
        node->after.push_back(earlier);
    }
  // The host's own order: what it has waited for.
  for (const NodeRef &earlier : nodes)
    if (earlier->isKnown)
      include(*earlier);
  waiting.push_back(node);
  nodes.push_back(node);
  return node;
}

void Timeline::run(Node &node) {
  node.footprint = node.work(random);
  node.isDone = true;
  node.doneAt = std::chrono::steady_clock::now();
  node.after.clear();
  if (node.footprint.isEmpty())
    return;
  for (const NodeRef &other : nodes) {
    if (other.get() == &node || !other->isDone || isAfter(node, *other) || isAfter(*other, node))
      continue;
    if (node.footprint.conflict(other->footprint)) {
      const Node &early = other->number < node.number ? *other : node,
                 &late = other->number < node.number ? node : *other;
      throw Fault("no order between " + early.what + " and " + late.what +
                  ", which touch the same bytes: no event or stream joins them");
    }
  }
}

bool Timeline::isInTheMood(const Node &node) {
  static constexpr uint64_t kPaces[] = {1, 1, 8, 64};
  auto [place, isNew] = paces.try_emplace(node.stream);
  if (isNew)
    place->second = kPaces[draw(std::size(kPaces))];
  return place->second == 1 || draw(place->second) == 0;
}

Timeline::Ran Timeline::runOne() {
  std::vector<NodeRef> ready;
  for (const NodeRef &node : waiting)
    if (std::all_of(node->after.begin(), node->after.end(),
                    [](const NodeRef &earlier) { return earlier->isDone; }))
      ready.push_back(node);
  Ran ran = Ran::None;
  while (!ready.empty()) {
    auto place = ready.begin() + static_cast<std::ptrdiff_t>(random() % ready.size());
    NodeRef chosen = *place;
    if (!isInTheMood(*chosen)) {
      ran = Ran::NoneYet;
    } else if (!chosen->isReady || chosen->isReady()) {
      waiting.erase(std::find(waiting.begin(), waiting.end(), chosen));
      run(*chosen);
      return Ran::One;
    }
    ready.erase(place);
  }
  return ran;
}

void Timeline::runOneOrPause() {
  if (runOne() == Ran::None)
    usleep(50);
}

/// What comes later is after it, without being told.
void Timeline::learn(const NodeRef &last) {
  for (const NodeRef &node : nodes)
    node->isKnown |= node == last || isAfter(*last, *node);
  // What the host knows is after or before all that is new: only what it did not know then may meet it.
  std::vector<NodeRef> unknown;
  for (const NodeRef &node : nodes)
    if (!node->isKnown)
      unknown.push_back(node);
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                             [&](const NodeRef &node) {
                               return node->isKnown &&
                                      std::all_of(unknown.begin(), unknown.end(), [&](const NodeRef &other) {
                                        return isAfter(*other, *node);
                                      });
                             }),
              nodes.end());
  first = nodes.empty() ? next : nodes.front()->number;
}

void Timeline::wait(const NodeRef &last) {
  if (!last)
    return;
  while (!last->isDone)
    runOneOrPause();
  learn(last);
}

void Timeline::waitForAll() {
  while (!waiting.empty())
    runOneOrPause();
  for (const NodeRef &node : std::vector<NodeRef>(nodes))
    if (!node->isKnown)
      learn(node);
}

bool Timeline::query(const NodeRef &node) {
  if (!node)
    return true;
  // Sometimes a device is fast, and sometimes not.
  for (uint64_t count = draw(4); count && runOne() == Ran::One;)
    --count;
  if (node->isDone)
    learn(node);
  return node->isDone;
}

} // namespace softdevice
