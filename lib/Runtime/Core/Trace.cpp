//===- Trace.cpp - writes a Chrome trace of all ranks ----------------------===//

#include "Core/Trace.h"
#include "dsopt/Runtime/Checkpoint.h"
#include "dsopt/Runtime/JsonText.h"
#include "dsopt/Runtime/Session.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>

namespace dsopt::runtime {
namespace {

/// Events of a rank that are exchanged at once.
constexpr int64_t kPiece = 2048;
constexpr int kStepLane = 0, kFirstQueue = 1;

/// What ranks tell each other to put their clocks beside each other.
struct Header {
  uint64_t clock = 0; ///< ranks of equal numbers read the same clock
  int64_t now = 0, events = 0;
};

uint64_t clockIdentity() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return std::hash<std::string>()(boot);
}

int64_t nanosecondsNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Trace::Clock::now().time_since_epoch()).count();
}

class Writer {
public:
  Writer(const Program &program, const std::string &path) : program(program), file(path) {
    text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  }

  void rank(int rank) {
    auto meta = [&](const std::string &what, int lane, const std::string &value) {
      line("{\"ph\":\"M\",\"pid\":" + std::to_string(rank) + ",\"tid\":" + std::to_string(lane) +
           ",\"name\":\"" + what + "\",\"args\":{" + value + "}}");
    };
    meta("process_name", 0, "\"name\":" + jsonString(describeRank(program, rank)));
    meta("process_sort_index", 0, "\"sort_index\":" + std::to_string(rank));
    auto name = [&](int lane, const std::string &name) {
      meta("thread_name", lane, "\"name\":" + jsonString(name));
      meta("thread_sort_index", lane, "\"sort_index\":" + std::to_string(lane));
    };
    name(kStepLane, "steps");
    const std::vector<Queue> &queues = queuesOf(rank);
    for (size_t i = 0; i < queues.size(); ++i)
      name(kFirstQueue + static_cast<int>(i), queues[i].name);
    name(waitLane(rank), "waiting");
  }

  /// `base` is the time that is 0.
  void event(int rank, const Trace::Event &event, int64_t base) {
    std::string step = std::to_string(event.step);
    if (event.action == Trace::Step)
      return slice(rank, kStepLane, event, base, "step " + step, "step", step);
    if (event.action == Trace::Waiting)
      return slice(rank, waitLane(rank), event, base, "waiting", "waiting", step);
    RankInfo info = rankInfo(program, rank);
    const Action &action = *findAction(program, info.position, event.action);
    int lane = kFirstQueue + static_cast<int>(action.queue);
    std::string more = step;
    if (action.kind == ActionKind::Input || action.kind == ActionKind::Run)
      more += ",\"micro_batch\":" + std::to_string(microBatchIndex(program, info.dpRank, action.micro_batch));
    if (action.bytes)
      more += ",\"bytes\":" + std::to_string(action.bytes);
    if (action.bucket >= 0)
      more += ",\"bucket\":" + jsonString(program.buckets[action.bucket].name);
    slice(rank, lane, event, base, describeAction(program, rank, event.action),
          kActionKinds[static_cast<int>(action.kind)], more);
    // An arrow from each send to its receive.
    bool sends = action.kind == ActionKind::Send;
    if (!sends && action.kind != ActionKind::Recv)
      return;
    const RankGroups &communicator = program.communicators[action.communicator];
    int receiver = sends ? static_cast<int>(program.grid.member(rank, communicator.axes, action.peer)) : rank;
    std::string id = step + " " + communicator.name + " " + action.tag + " " + std::to_string(receiver);
    line(std::string("{\"ph\":\"") + (sends ? "s" : "f\",\"bp\":\"e") +
         "\",\"cat\":\"value\",\"name\":\"value\"" + place(rank, lane) +
         ",\"ts\":" + microseconds(event.end - 1 - base) +
         ",\"id\":" + std::to_string(std::hash<std::string>()(id) & 0x7fffffff) + "}");
  }

  void finish() {
    text += "\n]}\n";
    file.append(text.data(), text.size());
    file.commit();
  }

private:
  /// A position's programs have the same queues.
  const std::vector<Queue> &queuesOf(int rank) const {
    return program.positions[rankInfo(program, rank).position].queues;
  }
  int waitLane(int rank) const { return kFirstQueue + static_cast<int>(queuesOf(rank).size()); }
  static std::string microseconds(int64_t nanoseconds) {
    char number[40];
    std::snprintf(number, sizeof number, "%.3f", static_cast<double>(nanoseconds) / 1e3);
    return number;
  }
  static std::string place(int rank, int lane) {
    return ",\"pid\":" + std::to_string(rank) + ",\"tid\":" + std::to_string(lane);
  }
  void slice(int rank, int lane, const Trace::Event &event, int64_t base, const std::string &name,
             const char *kind, const std::string &more) {
    line("{\"ph\":\"X\",\"name\":" + jsonString(name) + ",\"cat\":\"" + kind + "\"" + place(rank, lane) +
         ",\"ts\":" + microseconds(event.begin - base) + ",\"dur\":" + microseconds(event.end - event.begin) +
         ",\"args\":{\"step\":" + more + "}}");
  }
  void line(const std::string &event) {
    if (!first)
      text += ",\n";
    first = false;
    text += event;
    if (text.size() < 1 << 20)
      return;
    file.append(text.data(), text.size());
    text.clear();
  }

  const Program &program;
  AtomicFile file;
  std::string text;
  bool first = true;
};

} // namespace

void writeTrace(const Program &program, Engine &engine, const Trace &trace, const std::string &path) {
  const std::vector<Trace::Event> &mine = trace.all();
  engine.barrier();
  Header header{clockIdentity(), nanosecondsNow(), static_cast<int64_t>(mine.size())};
  std::vector<Header> headers(engine.size());
  engine.exchange(&header, sizeof header, headers.data());
  int64_t most = 0;
  for (const Header &other : headers)
    most = std::max(most, other.events);

  std::unique_ptr<Writer> writer;
  int64_t base = mine.empty() ? 0 : mine.front().begin;
  for (const Trace::Event &event : mine)
    base = std::min(base, event.begin);
  if (engine.rank() == 0) {
    writer = std::make_unique<Writer>(program, path);
    for (int rank = 0; rank < engine.size(); ++rank)
      writer->rank(rank);
  }
  std::vector<Trace::Event> piece(kPiece), all(kPiece * engine.size());
  for (int64_t at = 0; at < most; at += kPiece) {
    for (int64_t i = 0; i < kPiece; ++i)
      piece[i] = at + i < header.events ? mine[at + i] : Trace::Event();
    engine.exchange(piece.data(), static_cast<int64_t>(kPiece * sizeof(Trace::Event)), all.data());
    for (int rank = 0; writer && rank < engine.size(); ++rank) {
      // Clocks of other machines are put right by the moment at which all left the barrier.
      int64_t shift = headers[rank].clock == header.clock ? base : base + headers[rank].now - headers[0].now;
      for (int64_t i = 0; i < std::min(kPiece, headers[rank].events - at); ++i)
        writer->event(rank, all[rank * kPiece + i], shift);
    }
  }
  if (writer)
    writer->finish();
}

} // namespace dsopt::runtime
