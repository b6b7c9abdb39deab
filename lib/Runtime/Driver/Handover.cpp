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

#include <fcntl.h>
#include <sys/un.h>
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

/// What a rank says first.
struct Greeting {
  uint64_t what = 0;
  int64_t rank = 0;
};

Address nameOf(const std::string &job, int index) {
  std::string text = std::to_string(getuid()) + " " + job;
  char hash[64];
  std::snprintf(hash, sizeof hash, "dsopt-program-%016llx-%d",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())), index);
  Address address;
  auto &name = reinterpret_cast<sockaddr_un &>(address.storage);
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path + 1, hash, std::strlen(hash)); // a name outside of all folders
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + std::strlen(hash));
  return address;
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
      : job(job), greeting{XXH3_64bits(what.data(), what.size()), rank}, size(size), limit(limit) {
    if (rank == 0)
      listen();
  }

  bool makes() const { return greeting.rank == 0; }

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
        if (got == 1 && answer == Failed)
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
          throw LaunchError(StatusFailure, called() +
                                               ": the lowest rank of this host, which compiles the "
                                               "program for all, has not come within " +
                                               std::to_string(limit.count()) + " s");
        tellLate();
        throw LaunchError(StatusFailure, called() + ": " + lost);
      }
      std::vector<pollfd> entries;
      for (auto &[index, maker] : makers)
        entries.push_back({maker.fd(), POLLIN, 0});
      sys::poll(entries.data(), entries.size(), makers.empty() ? 5 : 200);
    }
  }

  void give(int file) {
    std::vector<int> missing = serve(limit, [&](const Socket &taker) {
      char answer = Given;
      if (sys::send(taker.fd(), &answer, 1, MSG_NOSIGNAL) != 1)
        throw Disconnected(std::strerror(errno));
      sendDescriptor(taker, file);
    });
    if (!missing.empty())
      throw LaunchError(StatusFailure, "local " + listOf(missing) +
                                           " of this host did not come for the program that its lowest rank "
                                           "compiled within " +
                                           std::to_string(limit.count()) + " s");
  }

  void fail(int status) {
    serve(kTold, [&](const Socket &taker) {
      char answer[] = {Failed, static_cast<char>(status)};
      [[maybe_unused]] ssize_t sent = sys::send(taker.fd(), answer, sizeof answer, MSG_NOSIGNAL);
    });
  }

private:
  std::string called() const { return "local rank " + std::to_string(greeting.rank); }

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
    fail(StatusFailure);
  }

  /// Whoever listens under a name of this job.
  void callAll() {
    for (int index = 0; index < kNames; ++index) {
      if (makers.count(index))
        continue;
      Socket maker = beginConnect(nameOf(job, index));
      if (!maker || !isOwnUser(maker))
        continue;
      if (sys::send(maker.fd(), &greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting)
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

  /// Answers the others as they come; those that did not in time.
  template <typename Reply> std::vector<int> serve(seconds most, Reply reply) {
    struct Taker {
      Socket socket;
      Greeting greeting;
      size_t received = 0;
    };
    std::vector<Taker> takers;
    std::vector<bool> served(size);
    served[0] = served[greeting.rank] = true;
    for (auto end = sys::now() + most;;) {
      std::vector<int> missing;
      for (int rank = 0; rank < size; ++rank)
        if (!served[rank])
          missing.push_back(rank);
      if (missing.empty() || sys::now() >= end)
        return missing;
      std::vector<pollfd> entries{{listener.fd(), POLLIN, 0}};
      for (Taker &taker : takers)
        entries.push_back({taker.socket.fd(), POLLIN, 0});
      sys::poll(entries.data(), entries.size(), 50);
      while (Socket socket = acceptNow(listener))
        if (isOwnUser(socket))
          takers.push_back({std::move(socket), {}, 0});
      for (size_t i = 0; i < takers.size();) {
        Taker &taker = takers[i];
        ssize_t got = sys::recv(taker.socket.fd(), reinterpret_cast<char *>(&taker.greeting) + taker.received,
                                sizeof(Greeting) - taker.received, MSG_DONTWAIT);
        bool waits = got < 0 && (errno == EAGAIN || errno == EINTR);
        taker.received += std::max<ssize_t>(got, 0);
        if (waits || (got > 0 && taker.received < sizeof(Greeting))) {
          ++i;
          continue;
        }
        if (got > 0)
          answer(taker.socket, taker.greeting, served, reply);
        std::swap(taker, takers.back());
        takers.pop_back();
      }
    }
  }

  template <typename Reply>
  void answer(const Socket &socket, const Greeting &other, std::vector<bool> &served, Reply reply) {
    if (other.what != greeting.what || other.rank < 1 || other.rank >= size) {
      char answer = Elsewhere;
      [[maybe_unused]] ssize_t sent = sys::send(socket.fd(), &answer, 1, MSG_NOSIGNAL);
      return;
    }
    // One that ended while it waited is missed where all ranks meet; it keeps nobody here.
    served[other.rank] = true;
    try {
      reply(socket);
    } catch (const Disconnected &) {
    }
  }

  const std::string job;
  const Greeting greeting;
  const int size;
  const seconds limit;
  Socket listener;
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
void Handover::fail(int status) { state->fail(status); }

} // namespace dsopt::runtime
