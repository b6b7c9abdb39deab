//===- VerifyArena.cpp - no two live buffers share bytes ------------------===//

#include "Verify.h"

#include <map>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// Goes through all uses of a memory in their order and remembers which buffer used each byte last. Earlier
/// ones need no second look: they were complete before that buffer's uses started, and so before whatever
/// starts after those.
class ArenaVerifier {
public:
  ArenaVerifier(MemoryOp memory, size_t index, const ProgramLife &life)
      : memory(memory), index(index), life(life), begins(life.lives.size()) {
    for (const BufferLife &buffer : life.lives)
      if (buffer.memory == index)
        lives.push_back(&buffer);
  }
  LogicalResult verify();

private:
  struct Use {
    int64_t end;
    const BufferLife *buffer;
    Clock ended;   ///< the buffer's uses
    Clock earlier; ///< those of other buffers before it
  };

  LogicalResult verifyPlaces();
  LogicalResult verifyPersistent();
  LogicalResult verifyShared();
  bool take(const BufferLife &buffer, const Episode &episode);
  void splitAt(int64_t place);
  LogicalResult report(const BufferLife *a, const BufferLife *b);
  std::pair<int64_t, int64_t> placeOf(const BufferLife &buffer) const {
    int64_t begin = begins[&buffer - life.lives.data()];
    return {begin, begin + buffer.bytes};
  }
  Operation *action(int64_t entry) { return life.timeline.entries()[entry].op; }

  MemoryOp memory;
  size_t index; ///< of the memory
  const ProgramLife &life;
  std::vector<const BufferLife *> lives; ///< of the memory
  std::vector<int64_t> begins;           ///< of the program's buffers
  std::map<int64_t, Use> uses;           ///< by first byte, disjoint
};
} // namespace

LogicalResult ArenaVerifier::verifyPlaces() {
  int64_t bytes = *memory.getBytes(), alignment = memory.getAlignment();
  for (const BufferLife *buffer : lives) {
    BufferOp op = buffer->buffer;
    if (!op.getOffset())
      return op.emitOpError("has no offset, but @") << memory.getSymName() << " is planned";
    begins[buffer - life.lives.data()] = *op.getOffset();
    auto refuse = [&](auto &&diag) -> LogicalResult {
      diag.attachNote(memory.getLoc()) << "the memory is here";
      return diag;
    };
    if (*op.getOffset() % alignment)
      return refuse(op.emitOpError("is at offset ")
                    << (int64_t)*op.getOffset() << ", expected a multiple of " << alignment);
    if (int64_t end = placeOf(*buffer).second; end > bytes)
      return refuse(op.emitOpError("ends at byte ")
                    << end << ", beyond the " << bytes << " of @" << memory.getSymName());
  }
  return success();
}

LogicalResult ArenaVerifier::report(const BufferLife *a, const BufferLife *b) {
  if (std::make_pair(placeOf(*b).first, b) < std::make_pair(placeOf(*a).first, a))
    std::swap(a, b);
  BufferOp first = a->buffer, second = b->buffer;
  InFlightDiagnostic diag = second.emitOpError("shares bytes with @")
                            << first.getSymName() << ", which is alive at the same time";
  diag.attachNote(first.getLoc()) << "the other buffer is here";
  if (a->persistent || b->persistent)
    return diag;
  if (auto clash = findClash(*a, *b))
    for (auto [buffer, episode] :
         {std::make_pair(first, clash->first), std::make_pair(second, clash->second)})
      diag.attachNote(action(episode->first)->getLoc())
          << "@" << BufferOp(buffer).getSymName() << " is in use from the "
          << describe(action(episode->first)) << " to the " << describe(action(episode->last));
  return diag;
}

/// What lives from step to step shares its bytes with nothing.
LogicalResult ArenaVerifier::verifyPersistent() {
  std::vector<const BufferLife *> placed;
  for (const BufferLife *buffer : lives)
    if (buffer->bytes)
      placed.push_back(buffer);
  llvm::sort(placed, [&](const BufferLife *a, const BufferLife *b) {
    return std::make_pair(placeOf(*a).first, a) < std::make_pair(placeOf(*b).first, b);
  });
  const BufferLife *furthest = nullptr, *furthestPersistent = nullptr;
  for (const BufferLife *buffer : placed) {
    const BufferLife *other = buffer->persistent ? furthest : furthestPersistent;
    if (other && placeOf(*other).second > placeOf(*buffer).first)
      return report(other, buffer);
    for (const BufferLife **last : {&furthest, &furthestPersistent})
      if ((last == &furthest || buffer->persistent) &&
          (!*last || placeOf(*buffer).second > placeOf(**last).second))
        *last = buffer;
  }
  return success();
}

void ArenaVerifier::splitAt(int64_t place) {
  auto it = uses.lower_bound(place);
  if (it == uses.begin() || std::prev(it)->second.end <= place)
    return;
  Use &before = std::prev(it)->second;
  uses.emplace_hint(it, place, before);
  before.end = place;
}

bool ArenaVerifier::take(const BufferLife &buffer, const Episode &episode) {
  auto [begin, end] = placeOf(buffer);
  splitAt(begin);
  splitAt(end);
  Use use{end, &buffer, episode.end, Clock()};
  auto it = uses.lower_bound(begin);
  while (it != uses.end() && it->first < end) {
    const Use &last = it->second;
    bool same = last.buffer == &buffer;
    use.earlier.join(same ? last.earlier : last.ended);
    if (same)
      use.ended.join(last.ended);
    it = uses.erase(it);
  }
  bool free = use.earlier.within(episode.start);
  uses.emplace_hint(it, begin, use);
  return free;
}

LogicalResult ArenaVerifier::verifyShared() {
  for (auto [id, episode] : life.spans) {
    const BufferLife &buffer = life.lives[id];
    if (buffer.memory != index || !buffer.bytes || take(buffer, *episode))
      continue;
    auto [begin, end] = placeOf(buffer);
    for (const BufferLife *other : lives) {
      auto [first, last] = placeOf(*other);
      if (other != &buffer && !other->persistent && first < end && begin < last && findClash(*other, buffer))
        return report(other, &buffer);
    }
    return failure();
  }
  return success();
}

LogicalResult ArenaVerifier::verify() {
  if (!memory.getBytes())
    return success();
  return failure(failed(verifyPlaces()) || failed(verifyPersistent()) || failed(verifyShared()));
}

LogicalResult dsopt::verifyArena(ProgramOp program, const ProgramLife &life) {
  for (auto [index, memory] : llvm::enumerate(getMemories(program)))
    if (failed(ArenaVerifier(memory, index, life).verify()))
      return failure();
  return success();
}
