//===- Rendezvous.cpp - moves what ranks say when they meet ----------------===//

#include "Comm/Rendezvous.h"
#include "Comm/Hmac.h"
#include "Comm/RendezvousMachine.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <unistd.h>

namespace dsopt::runtime {
using namespace rendezvous;
namespace {

/// So long what is left to say may take.
constexpr seconds kLastWords(2);
/// After so long a rank with trouble says itself what rank 0 should have said.
constexpr seconds kUnheard(3);

/// So long a rank that gives up tells those of its host that came later.
constexpr seconds kTells(3);
/// Open files of a rank beside its connections to others, and visitors that it has room for at least.
constexpr size_t kOwnFiles = 64, kFewestVisitors = 16;

/// The user of this process as it is known outside its user namespace, where containers without root may be
/// alike.
std::string userOutside() {
  std::ifstream map("/proc/self/uid_map");
  uint64_t user = geteuid();
  for (uint64_t inside, outside, count; map >> inside >> outside >> count;)
    if (user >= inside && user - inside < count)
      return std::to_string(outside + (user - inside));
  // Nobody outside, or no such namespaces.
  char users[256] = {};
  if (readlink("/proc/self/ns/user", users, sizeof users - 1) < 0)
    users[0] = 0;
  return std::to_string(user) + " " + users;
}

/// Ranks with equal identities are processes of one machine and one user that see each other's sockets: they
/// hand memory to each other. Others speak by TCP.
std::string hostIdentity(const Meeting &meeting) {
  if (!meeting.host.empty())
    return "named " + meeting.host;
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  char network[256] = {};
  if (readlink("/proc/self/ns/net", network, sizeof network - 1) < 0 || boot.empty())
    return "process " + std::to_string(getpid()) + std::to_string(gethostid());
  return boot + " " + network + " " + userOutside();
}

std::string hostName(const Meeting &meeting) {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return meeting.host.empty() ? name : meeting.host;
}

bool isLoopbackName(const std::string &name) {
  return name == "localhost" || name == "::1" || name.compare(0, 4, "127.") == 0;
}

/// Where rank 0 may be: the ports in the order they are tried.
std::vector<int> portsOf(const Meeting &meeting) {
  std::vector<int> ports;
  for (int i = meeting.portTaken; i < Meeting::kPorts && meeting.port + i < 65536; ++i)
    ports.push_back(meeting.port + i);
  return ports;
}

Self selfOf(const Meeting &meeting) {
  if (meeting.secret.empty() && !meeting.insecure && !isLoopbackName(meeting.address))
    throw LaunchError(
        StatusInput,
        "rank " + std::to_string(meeting.rank) + ": ranks meet at " + placeOf(meeting) +
            ", which others can reach, and have no secret to know each other by; give all of them the same "
            "DSOPT_SECRET or DSOPT_SECRET_FILE (openssl rand -hex 32 makes one), or -insecure on a network "
            "that nobody else is on");
  Self self{meeting, hostIdentity(meeting), hostName(meeting), keyOf(meeting), jobOf(meeting), randomBytes};
  size_t limit = raiseDescriptorLimit(), ranks = static_cast<size_t>(meeting.size);
  self.mostVisitors =
      std::min(ranks + 64, std::max(limit, ranks + kOwnFiles + kFewestVisitors) - ranks - kOwnFiles);
  return self;
}

/// What keeps this rank from taking part before it has said a word.
EarlyTrouble shortageOf(const Meeting &meeting) {
  size_t limit = raiseDescriptorLimit(), ranks = static_cast<size_t>(meeting.size);
  size_t needed = ranks + kOwnFiles + kFewestVisitors;
  if (limit >= needed)
    return {};
  return {StatusInput, (meeting.rank == 0 ? "rank 0: a run of " : "a run of ") + std::to_string(ranks) +
                           " ranks needs " + std::to_string(needed) + " open files, the system permits " +
                           std::to_string(limit) + " (ulimit -n)"};
}

/// Where a rank tells those of its own host that nobody will meet if rank 0 does not listen where all can
/// reach it.
Address placeOfLastWords(const Meeting &meeting) {
  char name[64];
  std::snprintf(name, sizeof name, "dsopt-meeting-%d-%016llx", static_cast<int>(getuid()),
                static_cast<unsigned long long>(jobOf(meeting)));
  return localName(name);
}

/// The sockets of a machine.
class Room {
public:
  Room(Machine &machine, const Meeting &meeting) : machine(machine), meeting(meeting) {}

  Socket listener;

  /// Until something comes, 100 ms at most. `interrupted` is asked.
  void turn() {
    std::vector<pollfd> entries;
    std::vector<int> ids;
    auto add = [&](int id, int fd, int events) {
      ids.push_back(id);
      entries.push_back({fd, static_cast<short>(events), 0});
    };
    if (listener && !machine.met)
      add(-1, listener.fd(), POLLIN);
    for (auto &[id, line] : machine.lines)
      if (auto socket = sockets.find(id); socket != sockets.end()) {
        bool writes = calling.count(id) || !line.channel.out.empty(), reads = line.reads && !line.ends;
        if (int events = (reads ? POLLIN : 0) | (writes ? POLLOUT : 0))
          add(id, socket->second.fd(), events);
      }
    if (sys::poll(entries.data(), entries.size(), 50) < 0 && errno != EINTR && errno != EAGAIN)
      throw LaunchError(StatusFailure, std::string("ranks cannot meet: poll: ") + std::strerror(errno));
    if (!machine.awaitsAnswer(now()))
      checkInterrupted({Patience::Clock::time_point::max(), meeting.interrupted});
    for (size_t i = 0; i < entries.size(); ++i)
      if (entries[i].revents)
        ids[i] < 0 ? accept() : serve(ids[i]);
    machine.tick(now());
  }

  /// Connects a line that the machine calls.
  void call(int id) {
    Socket socket = beginConnect(machine.lines.at(id).place);
    if (!socket)
      return machine.closed(id, std::strerror(errno), now());
    sockets.emplace(id, std::move(socket));
    calling[id] = true;
  }

  /// Sends what can be sent now and closes what has ended; whether nothing is left to be sent.
  bool flush() {
    bool clear = true;
    std::vector<std::pair<int, std::string>> gone;
    for (auto &[id, line] : machine.lines) {
      std::string &out = line.channel.out;
      auto found = sockets.find(id);
      if (found == sockets.end() || calling.count(id))
        continue;
      size_t done = 0;
      while (done < out.size()) {
        ssize_t sent =
            sys::send(found->second.fd(), out.data() + done, out.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
          continue;
        if (sent < 0 && errno != EAGAIN)
          gone.push_back({id, std::strerror(errno)});
        if (sent < 0)
          break;
        done += sent;
      }
      out.erase(0, done);
      clear &= out.empty();
      if (line.ends && out.empty())
        gone.push_back({id, ""});
    }
    for (auto &[id, why] : gone)
      why.empty() ? machine.closed(id, why, now()) : machine.broke(id, why, now());
    for (auto it = sockets.begin(); it != sockets.end();)
      if (machine.lines.count(it->first)) {
        ++it;
      } else {
        calling.erase(it->first);
        it = sockets.erase(it);
      }
    return clear;
  }

  /// What is still to be said, then what the meeting came to.
  Met finish() {
    for (Time end = now() + kLastWords; !flush() && now() < end;)
      turn();
    if (machine.refusal) {
      // Who is interrupted loses others that are, too.
      checkInterrupted({Patience::Clock::time_point::max(), meeting.interrupted});
      if (!machine.met)
        throw LaunchError(machine.refusal->status, machine.refusal->text, machine.refusal->quiet);
    }
    Met met;
    if (machine.refusal)
      met.failure = Error(machine.refusal->status, machine.refusal->text);
    met.hosts = machine.hosts;
    met.names = machine.names;
    met.key = machine.runKey;
    if (meeting.rank == 0)
      met.listener = std::move(listener);
    met.links.resize(meeting.size);
    for (int rank = 0; rank < meeting.size; ++rank)
      if (auto found = sockets.find(machine.links[rank]); found != sockets.end()) {
        prepareStream(found->second);
        met.links[rank] = std::move(found->second);
      }
    return met;
  }

  const Socket &socketOf(int id) const { return sockets.at(id); }
  static Time now() { return sys::now(); }

private:
  void accept() {
    while (true) {
      Socket socket = acceptNow(listener);
      if (socket) {
        int id = machine.arrived(peerAddress(socket), now());
        sockets.emplace(id, std::move(socket));
        continue;
      }
      bool full = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
      if (!full)
        return;
      std::string why = std::strerror(errno);
      if (!machine.makeRoom())
        throw LaunchError(StatusFailure, "rank " + std::to_string(meeting.rank) +
                                             " cannot take the connections of the other ranks: " + why);
      flush();
    }
  }

  void serve(int id) {
    auto line = machine.lines.find(id);
    auto found = sockets.find(id);
    if (line == machine.lines.end() || found == sockets.end())
      return;
    if (calling.erase(id)) {
      if (int error = connectError(found->second))
        return machine.closed(id, std::strerror(error), now());
      static_cast<GuestMachine &>(machine).connected(id, now());
      return;
    }
    // No byte more than the meeting wants: what follows belongs to the links.
    char buffer[16 << 10];
    while (line->second.reads && !line->second.ends) {
      size_t wants = std::min(line->second.channel.wants(), sizeof buffer);
      if (wants == 0)
        return;
      ssize_t got = sys::recv(found->second.fd(), buffer, wants, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0 && errno == EAGAIN)
        return;
      if (got < 0)
        return machine.broke(id, std::strerror(errno), now());
      if (got == 0)
        return machine.closed(id, "it closed the connection", now());
      machine.received(id, {buffer, static_cast<size_t>(got)}, now());
    }
  }

  Machine &machine;
  const Meeting &meeting;
  std::map<int, Socket> sockets;
  std::map<int, bool> calling; ///< lines whose connection is being made
};

/// Rank 0 cannot be where the others look for it.
class Unreachable : public LaunchError {
public:
  using LaunchError::LaunchError;
};

/// Where rank 0 listens. Throws Unreachable.
Socket listenAsHost(const Meeting &meeting) {
  std::vector<Address> addresses;
  try {
    addresses = resolveHost(meeting.address);
  } catch (const Disconnected &error) {
    throw Unreachable(StatusFailure, "rank 0 cannot listen at '" + meeting.address + "': " + error.what());
  }
  bool onlyHere = isLoopbackName(meeting.address);
  int error = EADDRNOTAVAIL;
  for (int port : portsOf(meeting))
    for (Address address : addresses) {
      address.setPort(port);
      Socket listener;
      // A host's own name often is a loopback address to itself, but not to others.
      if (address.loopback() == onlyHere)
        listener = listenAt(address);
      else
        errno = EADDRNOTAVAIL;
      if (!listener && errno == EADDRNOTAVAIL && !onlyHere) {
        // The name is one for others, as behind a translated address.
        Address any;
        any.storage.ss_family = address.storage.ss_family;
        any.bytes = address.bytes;
        any.setPort(port);
        listener = listenAt(any);
      }
      if (listener)
        return listener;
      error = errno;
    }
  throw Unreachable(StatusFailure, "rank 0 cannot listen at " + placeOf(meeting) + " or the " +
                                       std::to_string(Meeting::kPorts - 1) +
                                       " ports after it: " + std::strerror(error));
}

/// Those who come to `listener` meet, or hear of this rank's trouble.
Met gather(const Meeting &meeting, Socket listener) {
  HostMachine machine(selfOf(meeting), Room::now());
  Room room(machine, meeting);
  room.listener = std::move(listener);
  bool said = false;
  auto say = [&] {
    if (!machine.refusal || !meeting.say || machine.refusal->status == StatusInterrupted || said)
      return;
    checkInterrupted({Patience::Clock::time_point::max(), meeting.interrupted});
    said = true;
    meeting.say(machine.refusal->text);
  };
  try {
    while (!machine.done) {
      say(); // before the others hear of it and leave it to this rank
      room.flush();
      room.turn();
    }
    say();
  } catch (const Error &error) {
    if (error.status == StatusInterrupted)
      machine.refuse(error.status, error.what());
    room.flush();
    throw;
  }
  if (machine.refusal)
    machine.refusal->quiet = meeting.say != nullptr;
  return room.finish();
}

Met host(const Meeting &meeting) {
  try {
    return gather(meeting, listenAsHost(meeting));
  } catch (const Unreachable &error) {
    Socket listener = listenAt(placeOfLastWords(meeting));
    if (!listener)
      throw;
    Meeting troubled = meeting;
    troubled.trouble = {error.status, error.what()};
    return gather(troubled, std::move(listener));
  }
}

/// Ranks that began later than this one would wait longer for rank 0.
void tellLate(const Meeting &meeting, const Refusal &refusal) {
  Meeting troubled = meeting;
  troubled.trouble = {refusal.status, refusal.text};
  troubled.limit = kTells;
  troubled.say = nullptr;
  try {
    if (Socket listener = listenAt(placeOfLastWords(meeting)))
      gather(troubled, std::move(listener));
  } catch (const Error &) {
    // Interrupted, or what it was given to say.
  }
}

/// Where the ranks above this one connect: beside the way to rank 0, which others can go too; on rank 0's
/// own host that may be the loopback, which they cannot.
Socket listenAsGuest(const Meeting &meeting, const GuestMachine &machine, const Address &toHost) {
  Address address = toHost;
  address.setPort(0);
  bool anywhere = address.loopback() && !machine.oneHost() && !isLoopbackName(meeting.address);
  Socket listener = anywhere ? listenAnywhere(address.storage.ss_family) : listenAt(address);
  if (!listener)
    throw LaunchError(StatusFailure, "rank " + std::to_string(meeting.rank) + " cannot listen at " +
                                         address.text() + ": " + std::strerror(errno));
  return listener;
}

Met join(const Meeting &meeting) {
  Time start = Room::now();
  std::vector<Address> places;
  while (places.empty())
    try {
      for (const Address &address : resolveHost(meeting.address))
        for (int port : portsOf(meeting)) {
          places.push_back(address);
          places.back().setPort(port);
        }
      places.push_back(placeOfLastWords(meeting));
    } catch (const Disconnected &error) {
      // Names of hosts that are being started may come later.
      if (Room::now() - start > meeting.limit)
        throw LaunchError(StatusFailure, "rank " + std::to_string(meeting.rank) + " of " +
                                             std::to_string(meeting.size) + " cannot reach rank 0 at " +
                                             placeOf(meeting) + " within " +
                                             std::to_string(meeting.limit.count()) + " s: " + error.what());
      waitFor(-1, 0, {Room::now() + milliseconds(200), meeting.interrupted});
    }
  GuestMachine machine(selfOf(meeting), std::move(places), start);
  Room room(machine, meeting);
  bool said = false;
  while (!machine.done) {
    for (int id : std::exchange(machine.calls, {}))
      room.call(id);
    room.flush();
    try {
      room.turn();
    } catch (const Error &error) {
      machine.fail(error.status, error.what()); // the others end with this one, and rank 0 says why
      room.flush();
      throw LaunchError(error.status, error.what(), error.quiet || machine.host() >= 0);
    }
    bool unheard = meeting.trouble.status && machine.host() < 0 && Room::now() - start > kUnheard;
    if (unheard && meeting.say && !std::exchange(said, true))
      meeting.say(meeting.trouble.text);
    if (!machine.wantsPort)
      continue;
    try {
      room.listener = listenAsGuest(meeting, machine, localAddress(room.socketOf(machine.host())));
      machine.listening(localAddress(room.listener).port(), Room::now());
    } catch (const Error &error) {
      machine.fail(error.status, "rank " + std::to_string(meeting.rank) + " on " +
                                     machine.names[meeting.rank] + ": " + error.what());
    }
  }
  if (machine.gaveUp && !meeting.trouble.status) {
    if (meeting.say && !std::exchange(machine.refusal->quiet, true))
      meeting.say(machine.refusal->text);
    tellLate(meeting, *machine.refusal);
  }
  return room.finish();
}

} // namespace

Met meet(const Meeting &meeting) {
  Meeting own = meeting;
  if (!own.trouble.status)
    own.trouble = shortageOf(meeting);
  return own.rank == 0 ? host(own) : join(own);
}

bool tellTrouble(const Meeting &meeting) {
  try {
    meet(meeting);
  } catch (const LaunchError &error) {
    return error.quiet;
  } catch (const Error &) {
    // Interrupted.
  }
  return false;
}

std::string linkKey(const std::string &runKey, int rank, int peer) {
  return hmac(runKey,
              "link " + std::to_string(std::min(rank, peer)) + " " + std::to_string(std::max(rank, peer)));
}

} // namespace dsopt::runtime
