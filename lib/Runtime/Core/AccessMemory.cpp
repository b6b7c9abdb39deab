//===- AccessMemory.cpp - what actions do to memories, beside what they say -===//

#include "Core/AccessMemory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace dsopt::runtime {

/// Bytes of which all is alike.
struct AccessMemory::Span {
  enum Flag : unsigned { Reads = 1, Writes = 2, Whole = 4, Scratch = 8, Away = 16, Kept = 32 };
  int64_t begin, end;
  unsigned flags;
  bool is(unsigned flag) const { return flags & flag; }
  /// Whether the action has a word for them.
  bool isNamed() const { return is(Reads | Writes | Scratch); }
};

/// Two places hold the same nowhere, and reading one gives no number: NaN in f16, bf16, f32 and f64.
static constexpr char kPoison[] = {'\xfd', '\x7f'};

static uint64_t mixed(uint64_t number) {
  number = (number + 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
  number = (number ^ number >> 27) * 0x94d049bb133111ebull;
  return number ^ number >> 31;
}

AccessMemory::AccessMemory(const Position &position, const std::vector<char *> &memories, DeviceRank *device)
    : device(device) {
  for (size_t i = 0; i < position.memories.size(); ++i) {
    const Memory &memory = position.memories[i];
    Image image;
    image.begin = memories[i];
    image.bytes = memory.bytes;
    image.isOnDevice = device && memory.kind == MemoryKind::Device;
    for (std::vector<char> *bytes : {&image.kept, &image.first, &image.poison, &image.before})
      bytes->resize(memory.bytes);
    image.fetched.resize(image.isOnDevice ? memory.bytes : 0);
    image.seen = image.isOnDevice ? image.fetched.data() : image.begin;
    for (int64_t at = 0; at < memory.bytes; ++at) {
      image.poison[at] = kPoison[at % 2];
      image.before[at] = static_cast<char>(mixed(at / 8) >> at % 8 * 8);
    }
    // Unlike in each byte.
    image.beforeAgain = image.before;
    for (char &byte : image.beforeAgain)
      byte = static_cast<char>(~byte);
    images.push_back(std::move(image));
  }
}

std::pair<size_t, int64_t> AccessMemory::find(const char *address) const {
  for (size_t i = 0; i < images.size(); ++i)
    if (address >= images[i].begin && address < images[i].begin + images[i].bytes)
      return {i, address - images[i].begin};
  return {images.size(), 0};
}

/// All but what others write meanwhile.
void AccessMemory::look(const std::vector<OthersTouch> &others) {
  // What decisions bring there is on its way.
  if (device)
    DSOPT_CUDA(cuStreamSynchronize, device->copyStream());
  std::vector<OthersTouch> writers;
  std::copy_if(others.begin(), others.end(), std::back_inserter(writers),
               [](const OthersTouch &other) { return other.writes; });
  for (size_t memory = 0; memory < images.size(); ++memory) {
    Image &image = images[memory];
    for (const Span &span : spans({}, writers, memory)) {
      if (!image.isOnDevice || span.is(Span::Away))
        continue;
      device->state.fetch(image.fetched.data() + span.begin, image.begin + span.begin, span.end - span.begin);
    }
  }
}

void AccessMemory::begin() {
  look({});
  for (Image &image : images)
    image.kept.assign(image.seen, image.seen + image.bytes);
}

void AccessMemory::put(const Image &image, const Span &span, const std::vector<char> &from) {
  char *to = image.begin + span.begin;
  int64_t bytes = span.end - span.begin;
  if (bytes == 0)
    return;
  if (image.isOnDevice)
    DSOPT_CUDA(cuMemcpyHtoDAsync_v2, cuda::addressOf(device->memory.onDevice(to)), from.data() + span.begin,
               bytes, device->copyStream());
  else
    std::memcpy(to, from.data() + span.begin, bytes);
}

std::vector<AccessMemory::Span> AccessMemory::spans(const std::vector<Touch> &touches,
                                                    const std::vector<OthersTouch> &others,
                                                    size_t memory) const {
  std::vector<int64_t> bounds{0, images[memory].bytes};
  auto bound = [&](const auto &touch) {
    if (touch.memory == memory && touch.begin < touch.end)
      bounds.insert(bounds.end(), {touch.begin, touch.end});
  };
  std::for_each(touches.begin(), touches.end(), bound);
  std::for_each(others.begin(), others.end(), bound);
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  std::vector<Span> all;
  for (size_t i = 0; i + 1 < bounds.size(); ++i)
    all.push_back({bounds[i], bounds[i + 1], 0});
  auto mark = [&](const auto &touch, unsigned flags) {
    if (touch.memory != memory)
      return;
    size_t at = std::lower_bound(bounds.begin(), bounds.end(), touch.begin) - bounds.begin();
    for (; at < all.size() && all[at].end <= touch.end; ++at)
      all[at].flags |= flags;
  };
  for (const Touch &touch : touches)
    mark(touch, touch.isScratch ? Span::Scratch
                                : (touch.reads ? Span::Reads : 0u) | (touch.writes ? Span::Writes : 0u) |
                                      (touch.isWhole ? Span::Whole : 0u));
  for (const OthersTouch &other : others)
    mark(other, other.writes ? Span::Away : Span::Kept);
  for (Span &span : all)
    if (span.is(Span::Reads))
      span.flags &= ~static_cast<unsigned>(Span::Whole);
  return all;
}

/// What is there before an action runs: of all memories together the first `poisoned` bytes that it has no
/// word for are poison.
void AccessMemory::placeFor(const Trial &trial, bool rehearses, int64_t poisoned) {
  int64_t first = 0; ///< of the memory, among all of them
  for (size_t memory = 0; memory < images.size(); first += images[memory++].bytes)
    for (Span span : spans(trial.touches, trial.others, memory)) {
      const Image &image = images[memory];
      if (span.is(Span::Away))
        continue;
      if (span.is(Span::Whole | Span::Scratch)) {
        put(image, span, rehearses ? image.before : image.beforeAgain);
      } else if (span.is(Span::Writes)) {
        put(image, span, image.kept);
      } else if (!span.isNamed() && !span.is(Span::Kept)) {
        Span rest = span;
        span.end = std::clamp(poisoned - first, span.begin, span.end);
        rest.begin = span.end;
        put(image, span, image.poison);
        put(image, rest, image.kept);
      }
    }
  if (device)
    DSOPT_CUDA(cuStreamSynchronize, device->copyStream());
}

static std::string shownBytes(const char *at, int64_t most) {
  std::string text;
  for (int64_t i = 0; i < std::min<int64_t>(most, 4); ++i) {
    char byte[4];
    std::snprintf(byte, sizeof(byte), "%s%02x", i ? " " : "", static_cast<unsigned char>(at[i]));
    text += byte;
  }
  return text;
}

/// The first byte of [begin, end) that differs, -1: none.
static int64_t firstDifference(const char *a, const char *b, int64_t begin, int64_t end) {
  if (std::memcmp(a + begin, b + begin, end - begin) == 0)
    return -1;
  return std::mismatch(a + begin, a + end, b + begin).first - a;
}

/// Throws where a span has changed of what `expected` has.
static void expect(const Position &position, const std::vector<Touch> &touches, size_t memory,
                   const char *seen, const std::vector<char> &expected, int64_t begin, int64_t end,
                   const char *unsaid) {
  if (int64_t at = firstDifference(seen, expected.data(), begin, end); at >= 0)
    throw AccessFault{"writes " + describePlace(position, memory, at, touches) + " (" +
                      shownBytes(seen + at, end - at) + "), which it " + unsaid};
}

static constexpr const char *kUnsaid = "does not say", *kReadAlone = "says it only reads";

void AccessMemory::rehearse(const Trial &trial) {
  placeFor(trial, /*rehearses=*/true, INT64_MAX);
  trial.run();
  look(trial.others);
  for (size_t memory = 0; memory < images.size(); ++memory) {
    Image &image = images[memory];
    for (const Span &span : spans(trial.touches, trial.others, memory)) {
      if (span.is(Span::Away | Span::Scratch))
        continue;
      if (span.is(Span::Writes))
        std::copy(image.seen + span.begin, image.seen + span.end, image.first.begin() + span.begin);
      else
        expect(trial.position, trial.touches, memory, image.seen,
               span.isNamed() || span.is(Span::Kept) ? image.kept : image.poison, span.begin, span.end,
               span.isNamed() ? kReadAlone : kUnsaid);
    }
  }
  placeFor(trial, /*rehearses=*/false, 0);
}

void AccessMemory::compare(const Trial &trial) {
  look(trial.others);
  for (size_t memory = 0; memory < images.size(); ++memory) {
    Image &image = images[memory];
    for (const Span &span : spans(trial.touches, trial.others, memory)) {
      if (span.is(Span::Away))
        continue;
      if (!span.is(Span::Writes | Span::Scratch))
        expect(trial.position, trial.touches, memory, image.seen, image.kept, span.begin, span.end,
               span.isNamed() ? kReadAlone : kUnsaid);
      else if (int64_t at = firstDifference(image.seen, image.first.data(), span.begin, span.end);
               at >= 0 && span.is(Span::Writes))
        differs(trial, memory, at);
    }
  }
  for (size_t memory = 0; memory < images.size(); ++memory)
    for (const Span &span : spans(trial.touches, trial.others, memory))
      if (span.is(Span::Writes | Span::Scratch) && !span.is(Span::Away))
        keep(images[memory], span);
}

void AccessMemory::keep(Image &image, const Span &span) {
  std::copy(image.seen + span.begin, image.seen + span.end, image.kept.begin() + span.begin);
}

/// What makes the byte differ: it was not written at all, or follows from what the action does not say it
/// reads, of which the first byte is found by poisoning less and less.
void AccessMemory::differs(const Trial &trial, size_t memory, int64_t at) {
  const Image &image = images[memory];
  std::string place = describePlace(trial.position, memory, at, trial.touches);
  std::vector<Span> all = spans(trial.touches, trial.others, memory);
  auto own = std::find_if(all.begin(), all.end(), [&](const Span &span) { return at < span.end; });
  if (own->is(Span::Whole) && image.first[at] == image.before[at] && image.seen[at] == image.beforeAgain[at])
    throw AccessFault{"says it writes " + place + ", but does not"};
  char expected = image.seen[at];
  // What was compared already is as the action has left it.
  auto depends = [&](int64_t poisoned) {
    placeFor(trial, /*rehearses=*/false, poisoned);
    trial.run();
    look(trial.others);
    return images[memory].seen[at] != expected;
  };
  int64_t total = 0;
  for (const Image &one : images)
    total += one.bytes;
  if (!depends(total))
    throw AccessFault{"reads what it says it only writes, or its scratch, before it has written it: " +
                      place + " follows from it"};
  int64_t without = 0, with = total;
  while (with - without > 1) {
    int64_t middle = without + (with - without) / 2;
    (depends(middle) ? with : without) = middle;
  }
  size_t its = 0;
  for (; without >= images[its].bytes; ++its)
    without -= images[its].bytes;
  throw AccessFault{"reads " + describePlace(trial.position, its, without, {}) + " (" +
                    shownBytes(images[its].kept.data() + without, images[its].bytes - without) +
                    "), which it does not say: " + place + ", which it writes, follows from it"};
}

void AccessMemory::launch(const Trial &trial) {
  for (size_t memory = 0; memory < images.size(); ++memory)
    for (const Span &span : spans(trial.touches, trial.others, memory))
      if (span.is(Span::Whole) && !span.is(Span::Away))
        put(images[memory], span, images[memory].before);
  if (device)
    DSOPT_CUDA(cuStreamSynchronize, device->copyStream());
}

void AccessMemory::land(const Trial &trial) {
  look(trial.others);
  for (size_t memory = 0; memory < images.size(); ++memory) {
    Image &image = images[memory];
    for (const Span &span : spans(trial.touches, trial.others, memory)) {
      if (!span.is(Span::Writes) || span.is(Span::Away))
        continue;
      // So many bytes are what was there by no accident.
      auto expectWritten = [&](int64_t at, int64_t bytes) {
        if (at >= span.begin && at + bytes <= span.end &&
            std::memcmp(image.seen + at, image.before.data() + at, bytes) == 0)
          throw AccessFault{"says it writes " + describePlace(trial.position, memory, at, trial.touches) +
                            ", but does not"};
      };
      if (span.is(Span::Whole)) {
        for (int64_t at = (span.begin + 7) / 8 * 8; at < span.end; at += 8)
          expectWritten(at, 8);
        expectWritten(span.end - 4, 4);
      }
      keep(image, span);
    }
  }
}

void AccessMemory::expectNoChange(const Position &position, const std::vector<OthersTouch> &others) {
  look(others);
  for (size_t memory = 0; memory < images.size(); ++memory)
    for (const Span &span : spans({}, others, memory))
      if (!span.is(Span::Away))
        expect(position, {}, memory, images[memory].seen, images[memory].kept, span.begin, span.end, kUnsaid);
}

} // namespace dsopt::runtime
