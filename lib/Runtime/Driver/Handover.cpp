//===- Handover.cpp - one rank of a host makes, the others take -----------===//

#include "dsopt/Runtime/Handover.h"
#include "Comm/Sockets.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/System.h"
#include "dsopt/Runtime/World.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dsopt::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
/// Names that are tried: one may be another user's, or of an earlier job that is about to end.
constexpr int kNames = 16;
/// Another maker may take the place of one that is gone: of a job that was started again.
constexpr seconds kReplaced(2), kTold(3);
enum Answer : char { Given = 'G', Failed = 'F', Elsewhere = 'E' };

/// What a rank says first; `bytes` of what it wants follow, or of why it cannot go on.
struct Greeting {
  uint64_t bytes = 0;
  int32_t rank = 0, status = StatusOk;
};
/// More of it than that is told by its hash.
constexpr size_t kMostText = 64 << 10;

std::string shortened(std::string what) {
  if (what.size() > kMostText)
    what = what.substr(0, kMostText - 100) + "\n" + std::to_string(XXH3_64bits(what.data(), what.size()));
  return what;
}

/// The lines of one text that another one lacks: "-lr=1 -zero=2".
std::string onlyIn(const std::string &text, const std::string &other) {
  auto linesOf = [](const std::string &all) {
    std::vector<std::string> lines;
    std::istringstream stream(all);
    for (std::string line; std::getline(stream, line);)
      lines.push_back(line);
    return lines;
  };
  std::vector<std::string> known = linesOf(other);
  std::string result;
  for (const std::string &line : linesOf(text))
    if (std::find(known.begin(), known.end(), line) == known.end())
      result += (result.empty() ? "" : " ") + line;
  return result.empty() ? "nothing of the kind" : result;
}

Address nameOf(const std::string &job, int index) {
  std::string text = std::to_string(getuid()) + " " + job;
  char hash[64];
  std::snprintf(hash, sizeof hash, "dsopt-program-%016llx-%d",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())), index);
  return localName(hash);
}

bool isOwnUser(const Socket &socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == getuid();
}

std::string listOf(const std::vector<int> &ranks) {
  std::string text = ranks.size() > 1 ? "ranks " : "rank ";
  for (size_t i = 0; i < ranks.size() && i < 8; ++i)
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text + (ranks.size() > 8 ? " ..." : "");
}

} // namespace

class Handover::State {
public:
  State(const std::string &job, const std::string &what, int rank, int size, seconds limit)
      : job(job), what(shortened(what)), self(rank), size(size), limit(limit) {
    if (rank == 0)
      listen();
  }

  bool makes() const { return self == 0; }

  int take() {
    sys::Clock::time_point until = sys::now() + limit;
    std::string lost;
    while (true) {
      callAll();
      for (auto it = makers.begin(); it != makers.end();) {
        char answer = 0;
        ssize_t got = sys::recv(it->second.fd(), &answer, 1, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
          ++it;
          continue;
        }
        if (got == 1 && answer == Given)
          return receive(it->second);
        told |= got == 1 && answer == Failed;
        if (told)
          throw Error(statusOf(it->second), "the lowest rank of this host could not compile the program",
                      /*quiet=*/true);
        if (got != 1) {
          lost = "the lowest rank of this host ended before it had compiled the program";
          until = std::min(until, sys::now() + kReplaced);
        }
        it = makers.erase(it);
      }
      // As long as one lives it may take its time.
      if (makers.empty() && sys::now() > until) {
        if (lost.empty())
          lost = "the lowest rank of this host, which compiles the program for all, has not come within " +
                 std::to_string(limit.count()) + " s";
        if (!trouble)
          tellLate();
        told = true;
        throw LaunchError(StatusFailure, called() + ": " + lost);
      }
      std::vector<pollfd> entries;
      for (auto &[index, maker] : makers)
        entries.push_back({maker.fd(), POLLIN, 0});
      sys::poll(entries.data(), entries.size(), makers.empty() ? 5 : 200);
    }
  }

  void give(int file) {
    std::map<int, Taker> takers = gather(limit);
    std::vector<int> missing;
    for (int rank = 1; rank < size; ++rank)
      if (!takers.count(rank))
        missing.push_back(rank);
    for (auto &[rank, taker] : takers)
      if (taker.greeting.status)
        refuse(takers, taker.greeting.status,
               "local rank " + std::to_string(rank) + " of this host: " + taker.what);
      else if (taker.what != what)
        refuse(takers, StatusInput,
               "local rank " + std::to_string(rank) + " of this host was given " + onlyIn(taker.what, what) +
                   ", local rank 0, which compiles for all, " + onlyIn(what, taker.what) +
                   ": the ranks of a run need the same options");
    if (!missing.empty())
      refuse(takers, StatusFailure,
             "local " + listOf(missing) +
                 " of this host did not come for the program that its lowest rank compiled within " +
                 std::to_string(limit.count()) + " s");
    for (auto &[rank, taker] : takers) {
      char answer = Given;
      // One that ended while it waited is missed where all ranks meet; it keeps nobody here.
      try {
        if (sys::send(taker.socket.fd(), &answer, 1, MSG_NOSIGNAL) == 1)
          sendDescriptor(taker.socket, file);
      } catch (const Disconnected &) {
      }
    }
  }

  bool fail(int status, const std::string &text) {
    if (std::exchange(told, true))
      return true;
    if (makes()) {
      if (refused.empty())
        refused = gather(kTold);
      tell(refused, status);
      return true;
    }
    what = shortened(text.empty() ? "it failed" : text);
    trouble = status;
    makers.clear();
    try {
      take();
    } catch (const LaunchError &) {
      return false; // there was no maker
    } catch (const Error &error) {
    }
    return true;
  }

private:
  /// A rank that has come.
  struct Taker {
    Socket socket;
    std::string received; ///< Greeting, then what it wants
    Greeting greeting;
    std::string what;
    sys::Clock::time_point since;
  };

  std::string called() const { return "local rank " + std::to_string(self); }

  void listen() {
    for (int index = 0; index < kNames && !listener; ++index)
      listener = listenAt(nameOf(job, index));
    if (!listener)
      throw LaunchError(StatusFailure, std::string("the other ranks of this host cannot be reached: ") +
                                           std::strerror(errno));
  }

  /// Ranks that have not seen the maker live would wait for it: they are told as if by itself. Those that
  /// have do this too, and none waits for another.
  void tellLate() {
    makers.clear();
    listen();
    tell(gather(kTold), StatusFailure);
  }

  /// Whoever listens under a name of this job.
  void callAll() {
    for (int index = 0; index < kNames; ++index) {
      if (makers.count(index))
        continue;
      Socket maker = beginConnect(nameOf(job, index));
      if (!maker || !isOwnUser(maker))
        continue;
      Greeting greeting{what.size(), self, trouble};
      std::string text(reinterpret_cast<const char *>(&greeting), sizeof greeting);
      text += what;
      if (sys::send(maker.fd(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()))
        makers.emplace(index, std::move(maker));
    }
  }

  int receive(const Socket &maker) {
    try {
      int file = receiveDescriptor(maker, {sys::now() + seconds(5), nullptr});
      fcntl(file, F_SETFD, 0);
      return file;
    } catch (const Disconnected &error) {
      throw LaunchError(StatusFailure,
                        called() + " got no program from the lowest rank of this host: " + error.what());
    }
  }

  static int statusOf(const Socket &maker) {
    char status = StatusFailure;
    sys::recv(maker.fd(), &status, 1, 0);
    return status >= StatusInput && status <= StatusInterrupted ? status : int(StatusFailure);
  }

  /// The others by their numbers, all or those that have come in time. One that wants something else may be
  /// of another job with the same name: it stands for its number only where nobody else does for a while.
  std::map<int, Taker> gather(seconds most) {
    std::map<int, Taker> right, others;
    std::vector<Taker> unknown;
    for (auto end = sys::now() + most;;) {
      auto now = sys::now();
      int counted = 1;
      for (int rank = 0; rank < size; ++rank) {
        auto other = others.find(rank);
        counted += right.count(rank) || (other != others.end() && now - other->second.since > kReplaced);
      }
      if (counted >= size || now >= end) {
        right.merge(others);
        return right;
      }
      std::vector<pollfd> entries{{listener.fd(), POLLIN, 0}};
      for (Taker &taker : unknown)
        entries.push_back({taker.socket.fd(), POLLIN, 0});
      sys::poll(entries.data(), entries.size(), 50);
      while (Socket socket = acceptNow(listener))
        if (isOwnUser(socket))
          unknown.push_back({std::move(socket), "", {}, "", {}});
      for (size_t i = 0; i < unknown.size();) {
        if (hears(unknown[i])) {
          ++i;
          continue;
        }
        Taker taker = std::move(unknown[i]);
        std::swap(unknown[i], unknown.back());
        unknown.pop_back();
        int rank = taker.greeting.rank;
        bool differs = taker.what != what || taker.greeting.status;
        if (taker.what.empty() || rank < 0 || rank >= size || rank == self)
          answerElsewhere(taker);
        else if (differs)
          replace(others, rank, std::move(taker));
        else
          replace(right, rank, std::move(taker));
      }
      for (auto &[rank, taker] : right)
        if (auto other = others.find(rank); other != others.end()) {
          answerElsewhere(other->second);
          others.erase(other);
        }
    }
  }

  static void replace(std::map<int, Taker> &takers, int rank, Taker taker) {
    taker.since = sys::now();
    takers.erase(rank);
    takers.emplace(rank, std::move(taker));
  }

  /// Takes what has come; whether more is to come.
  static bool hears(Taker &taker) {
    char buffer[4096];
    while (true) {
      ssize_t got = sys::recv(taker.socket.fd(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
      if (got <= 0)
        return false;
      taker.received.append(buffer, got);
      if (taker.received.size() < sizeof(Greeting))
        continue;
      std::memcpy(&taker.greeting, taker.received.data(), sizeof(Greeting));
      if (taker.greeting.bytes > kMostText)
        return false;
      if (taker.received.size() < sizeof(Greeting) + taker.greeting.bytes)
        continue;
      taker.what = taker.received.substr(sizeof(Greeting));
      return false;
    }
  }

  static void answerElsewhere(const Taker &taker) {
    char answer = Elsewhere;
    [[maybe_unused]] ssize_t sent = sys::send(taker.socket.fd(), &answer, 1, MSG_NOSIGNAL);
  }

  static void tell(const std::map<int, Taker> &takers, int status) {
    for (auto &[rank, taker] : takers) {
      char answer[] = {Failed, static_cast<char>(status)};
      [[maybe_unused]] ssize_t sent = sys::send(taker.socket.fd(), answer, sizeof answer, MSG_NOSIGNAL);
    }
  }

  /// They are told by fail(), when the reason is said: a launcher ends this rank as soon as one has ended.
  [[noreturn]] void refuse(std::map<int, Taker> &takers, int status, const std::string &text) {
    refused = std::move(takers);
    throw LaunchError(status, text);
  }

  const std::string job;
  std::string what;       ///< a taker's `trouble` instead, if there is one
  int trouble = StatusOk; ///< why a taker cannot go on
  const int self, size;   ///< among the ranks of this host
  const seconds limit;
  Socket listener;
  bool told = false;            ///< the others know that there is nothing to take
  std::map<int, Taker> refused; ///< of a maker, who have come and get nothing
  std::map<int, Socket> makers; ///< of a taker, by the number of the name
};

Handover::Handover(const std::string &job, const std::string &what, int localRank, int localSize,
                   std::chrono::seconds limit)
    : state(std::make_unique<State>(job, what, localRank, localSize, limit)) {}
Handover::~Handover() = default;

bool Handover::makes() const { return state->makes(); }
int Handover::take() { return state->take(); }
void Handover::give(int file) {
  fault::point("handover.give");
  state->give(file);
}
bool Handover::fail(int status, const std::string &text) { return state->fail(status, text); }

} // namespace dsopt::runtime
