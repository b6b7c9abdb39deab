//===- World.cpp - processes become ranks with memory and an engine --------===//

#include "dsopt/Runtime/World.h"
#include "Comm/Hmac.h"
#include "Comm/Rendezvous.h"
#include "Comm/WorldEngine.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <poll.h>
#include <unistd.h>

namespace dsopt::runtime {
namespace {

/// The name in the abstract namespace under which the first rank of a host hands out its memory.
Address memoryName(const Met &met, int first) {
  std::string text = "dsopt-" + std::to_string(first) + "-";
  // Everybody on this host can read such names: the key itself does not belong there.
  for (unsigned char byte : hmac(met.key, "memory")) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return localName(text);
}

bool isOwnUser(const Socket &socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == getuid();
}

/// How often ranks that share memory look for those that ended, and how long after one that went silent.
constexpr std::chrono::milliseconds kLook(100);

/// Whether a rank has ended since all met, whatever it said before.
bool anyEnded(const Met &met) {
  std::vector<pollfd> links;
  for (const Socket &link : met.links)
    if (link)
      links.push_back({link.fd(), POLLRDHUP, 0});
  return sys::poll(links.data(), links.size(), 0) > 0;
}

/// The memory of this host: the first rank makes it, the others map it too. None where a rank has ended: the
/// engine says so.
std::shared_ptr<SharedGroup> shareMemory(const Meeting &meeting, const Met &met,
                                         std::vector<int64_t> arenas) {
  std::vector<int> local;
  for (int rank = 0; rank < meeting.size; ++rank)
    if (met.hosts[rank] == met.hosts[meeting.rank])
      local.push_back(rank);
    else
      arenas[rank] = 0;
  if (local.size() == 1)
    return nullptr;
  for (int rank : local)
    arenas[rank] = std::max<int64_t>(arenas[rank], 1);
  Patience patience{Patience::Clock::now() + std::chrono::seconds(20), meeting.interrupted};
  std::string why = "no answer";
  int first = local.front();
  Address address = memoryName(met, first);
  if (meeting.rank == first) {
    Socket listener = listenAt(address);
    if (!listener)
      throw Disconnected(std::strerror(errno));
    int fd = -1;
    std::shared_ptr<SharedGroup> group = SharedGroup::createFile(arenas, fd);
    Socket file(fd);
    for (size_t left = local.size() - 1; left > 0;) {
      Socket peer = acceptOnce(listener, patience.within(kLook));
      if (peer && isOwnUser(peer)) {
        sendDescriptor(peer, file.fd());
        --left;
      } else if (anyEnded(met)) {
        return nullptr;
      } else if (patience.over()) {
        throw LaunchError(StatusFailure, "rank " + std::to_string(first) + " on " + met.names[first] +
                                             ": not all ranks of this host took their shared memory");
      }
    }
    return group;
  }
  while (!patience.over()) {
    Socket socket = connectOnce(address, patience, why);
    if (!socket && anyEnded(met))
      return nullptr;
    if (!socket) {
      waitFor(-1, 0, patience.within(std::chrono::milliseconds(2)));
      continue;
    }
    if (!isOwnUser(socket))
      break;
    while (!waitFor(socket.fd(), POLLIN, patience.within(kLook)) && !patience.over())
      if (anyEnded(met))
        return nullptr;
    try {
      Socket file(receiveDescriptor(socket, patience));
      return SharedGroup::open(arenas, file.fd());
    } catch (const Disconnected &) {
      waitFor(-1, 0, patience.within(kLook));
      if (anyEnded(met))
        return nullptr;
      throw;
    }
  }
  throw LaunchError(StatusFailure, "rank " + std::to_string(meeting.rank) + " on " + met.names[meeting.rank] +
                                       " cannot take its memory from rank " + std::to_string(first) + ": " +
                                       why);
}

} // namespace

Joined joinWorld(const Meeting &meeting, const std::vector<int64_t> &arenaBytes) {
  Met met = meet(meeting);
  Joined joined;
  std::string self = "rank " + std::to_string(meeting.rank) + " on " + met.names[meeting.rank] + ": ";
  std::optional<Error> failure = met.failure;
  try {
    if (!failure)
      joined.memory = shareMemory(meeting, met, arenaBytes);
    joined.arena =
        joined.memory ? joined.memory->arena(meeting.rank) : allocateArena(arenaBytes[meeting.rank]);
  } catch (const LaunchError &error) {
    failure = error;
  } catch (const Error &error) {
    failure = Error(error.status, self + error.what(), error.quiet);
  } catch (const Disconnected &error) {
    failure = Error(StatusFailure, self + "handing over memory failed: " + error.what());
  } catch (const std::exception &error) { // of memory, mostly
    failure = Error(StatusFailure, self + messageOf(error));
  }
  joined.engine = makeWorldEngine(meeting.rank, std::move(met), joined.memory);
  if (!failure)
    return joined;
  // The others are in the run already, or about to be.
  Error said = failure->quiet ? *failure : joined.engine->noticed(*failure);
  if (!said.quiet && meeting.say) {
    meeting.say(said.what());
    said.quiet = true;
  }
  joined.engine->fail(said.status, /*quiet=*/false);
  throw LaunchError(said.status, said.what(), said.quiet);
}

} // namespace dsopt::runtime
