//===- RendezvousGuest.cpp - the other ranks find rank 0 ------------------===//

#include "Comm/Hmac.h"
#include "Comm/RendezvousMachine.h"
#include "dsopt/Runtime/Fault.h"

#include <algorithm>

namespace dsopt::runtime::rendezvous {

/// So long a called connection may take to come about and to prove itself.
static constexpr seconds kCallLimit(3);
static constexpr milliseconds kPause(50);
/// So long a signal waits for the answer to this rank's last word.
static constexpr seconds kAnswer(2);

GuestMachine::GuestMachine(Self self, std::vector<Address> places, Time now)
    : Machine(std::move(self)), places(std::move(places)), limit(now + meeting.limit), nextCalls(now),
      now(now) {}

std::string GuestMachine::called(int rank) const {
  return "rank " + std::to_string(rank) + " on " + names[rank];
}

bool GuestMachine::oneHost() const {
  return std::all_of(hosts.begin(), hosts.end(), [&](const std::string &host) { return host == hosts[0]; });
}

void GuestMachine::end(int status, const std::string &text, bool quiet) {
  if (!refusal && !met)
    refusal = Refusal{status, text, quiet};
  wantsPort = false;
  done = true;
}

/// Who is connected to the others finds with them who says it. Else rank 1 does once it is known who is
/// there, and who cannot rely on that: all of rank 0's host may be gone.
void GuestMachine::endWithoutHost(const std::string &text) {
  bool quiet = welcomeSeen && meeting.rank > 1 && (hosts[1] != hosts[0] || hosts[meeting.rank] == hosts[0]);
  end(StatusFailure, "rank " + std::to_string(meeting.rank) + " " + text, quiet);
  met = isReady();
}

void GuestMachine::fail(int status, const std::string &text) {
  wantsPort = false;
  auto host = lines.find(hostLine);
  // What rank 0 gets behind the last word is the link's.
  if (host == lines.end() || host->second.ends || isReady())
    return end(status, text);
  Packet packet;
  packet.number(status);
  packet.text(text);
  host->second.channel.send(Trouble, packet); // rank 0 refuses with these words
}

void GuestMachine::call(const Address &place, int rank, const std::string &key, Time now) {
  Channel channel(Channel::Caller, key, self.job, self.nonce(), kTableBytes);
  Line line{std::move(channel), now, place};
  line.rank = rank;
  line.called = true;
  lines.emplace(nextLine, std::move(line));
  calls.push_back(nextLine++);
}

void GuestMachine::connected(int id, Time now) {
  if (auto found = lines.find(id); found != lines.end())
    found->second.since = now;
}

void GuestMachine::tick(Time now) {
  this->now = now;
  dropSilent(now);
  if (done)
    return;
  std::vector<int> late;
  bool calling = false;
  for (auto &[id, line] : lines)
    if (line.called && id != hostLine && !line.channel.proven() && !line.ends) {
      calling = true;
      if (now - line.since > kCallLimit)
        late.push_back(id);
    }
  for (int id : late)
    closed(id, "no answer in time", now);
  if (hostLine < 0) {
    if (foreignSince && (now >= limit || now - *foreignSince > kHelloLimit))
      return end(StatusInput,
                 "rank " + std::to_string(meeting.rank) + " and rank 0 at " + placeOf(meeting) +
                     (foreign == Channel::OtherKey
                          ? " do not know the same secret: DSOPT_SECRET or DSOPT_SECRET_FILE has "
                            "to be the same on all ranks"
                          : " are of different versions of dsopt: it has to be the same on all "
                            "ranks"));
    gaveUp = now >= limit;
    if (gaveUp)
      return end(StatusFailure, "rank " + std::to_string(meeting.rank) + " of " +
                                    std::to_string(meeting.size) + " cannot reach rank 0 at " +
                                    placeOf(meeting) + " within " + std::to_string(meeting.limit.count()) +
                                    " s: " + why);
    if (calling || now < nextCalls)
      return;
    nextCalls = now + kPause;
    for (const Address &place : places)
      call(place, 0, self.key, now);
    return;
  }
  // Rank 0's own limit ends first: it says what is missing.
  if (now >= limit)
    return endWithoutHost("heard no more of rank 0 at " + placeOf(meeting));
  std::vector<std::pair<int, Time>> due;
  std::swap(due, again);
  for (auto [rank, since] : due)
    if (now >= since)
      call(placesBelow.at(rank), rank, runKey, now);
    else
      again.push_back({rank, since});
}

void GuestMachine::proven(int id, Line &line, Time now) {
  if (!line.called)
    return;
  if (line.rank > 0) {
    Packet packet;
    packet.number(meeting.rank);
    line.channel.send(Peer, packet);
    return link(line.rank, id, line);
  }
  if (hostLine >= 0) {
    line.ends = true;
    return;
  }
  fault::point("meet.hello");
  hostLine = id;
  for (auto &[other, candidate] : lines)
    candidate.ends = other != id;
  Packet hello;
  hello.number(meeting.rank);
  hello.number(meeting.size);
  hello.text(self.host);
  hello.text(self.name);
  hello.text(packRecord(meeting.record));
  hello.number(meeting.trouble.status);
  hello.text(meeting.trouble.text.substr(0, 4000));
  line.channel.send(Hello, hello);
  limit = now + 2 * meeting.limit + patienceBeyond(meeting.limit);
}

void GuestMachine::faulty(int, Line &line, Channel::Fault fault, Time now) {
  if (line.rank != 0)
    return line.called ? again.push_back({line.rank, now + kPause}) : void();
  if (hostLine >= 0) {
    // What this rank says still arrives as it is: rank 0 says it to all.
    std::string text = "rank " + std::to_string(meeting.rank) + " and rank 0 at " + placeOf(meeting) +
                       " do not understand each other: a packet is damaged";
    line.ends = false;
    fail(StatusFailure, text);
    return end(StatusFailure, text, /*quiet=*/true);
  }
  // Only a rank 0 that listens where all can reach it is what this rank is looking for.
  if (line.place.local())
    return;
  why = fault == Channel::OtherJob ? "another job's rank 0 is there" : "what listens there is no rank 0";
  if ((fault == Channel::OtherKey || fault == Channel::OtherVersion) && !foreignSince) {
    foreignSince = now;
    foreign = fault;
  }
}

void GuestMachine::lost(int id, Line &line, const std::string &reason, Time now) {
  if (!line.called)
    return;
  if (id == hostLine)
    return endWithoutHost("lost rank 0 at " + placeOf(meeting) + " before all ranks had met: " + reason);
  if (line.rank == 0) {
    if (!foreignSince && !line.place.local())
      why = reason;
    return;
  }
  if (now < peersUntil)
    return again.push_back({line.rank, now + kPause});
  fail(StatusFailure, called(meeting.rank) + " cannot reach " + called(line.rank) + " at " +
                          line.place.text() + ":" + std::to_string(line.place.port()) + ": " + reason);
}

bool GuestMachine::tells(int id, Line &, const std::string &reason) {
  if (id != hostLine)
    return false;
  if (isReady()) {
    // What rank 0 gets next is the link's.
    endWithoutHost("lost rank 0 at " + placeOf(meeting) + " before all ranks had met: " + reason);
    links[0] = hostLine;
    return true;
  }
  fail(StatusFailure, "rank " + std::to_string(meeting.rank) + " on " + self.name + " lost rank 0 at " +
                          placeOf(meeting) + " before all ranks had met: " + reason);
  return true;
}

void GuestMachine::heard(int id, Line &line, const Channel::Message &message, Time now) {
  PacketReader packet(message.bytes);
  if (id != hostLine) {
    int64_t rank = packet.integer();
    bool expected = !line.called && message.kind == Peer && packet.ended() && rank > meeting.rank &&
                    rank < meeting.size && wanted[rank] && links[rank] < 0;
    if (expected)
      link(static_cast<int>(rank), id, line);
    else
      line.ends = true;
    return;
  }
  if (message.kind == Refused) {
    int status = static_cast<int>(packet.number());
    std::string text = packet.text();
    if (packet.ended() && status >= StatusInput && status <= StatusInterrupted)
      return end(status, text, /*quiet=*/true);
  }
  if (message.kind == Welcome && !welcomeSeen)
    return welcomed(packet, now);
  if (message.kind == Ports && welcomeSeen && !portsSeen)
    return callPeers(packet, now);
  if (message.kind == Go && isReady()) {
    line.reads = false;
    links[0] = hostLine;
    met = done = true;
    return;
  }
  end(StatusFailure, "rank 0 at " + placeOf(meeting) + " does not keep to the protocol");
}

void GuestMachine::welcomed(PacketReader packet, Time) {
  fault::point("meet.welcome");
  std::string nonce = packet.text();
  std::vector<std::string> table(packet.count(sizeof(uint64_t)));
  for (std::string &host : table)
    host = packet.text();
  bool sound = true;
  for (int rank = 0; rank < meeting.size && sound; ++rank) {
    uint64_t host = packet.number();
    names.push_back(packet.text());
    sound = packet.good() && host < table.size();
    if (sound)
      hosts.push_back(table[host]);
  }
  if (!sound || !packet.ended())
    return end(StatusFailure, "rank 0 at " + placeOf(meeting) + " does not keep to the protocol");
  welcomeSeen = true;
  runKey = hmac(self.key, "run " + nonce);
  links.assign(meeting.size, -1);
  wanted.assign(meeting.size, false);
  wantsPort = true;
}

void GuestMachine::listening(int port, Time now) {
  wantsPort = false;
  limit = now + meeting.limit + patienceBeyond(meeting.limit);
  Packet packet;
  packet.number(port);
  for (int rank : peersOf(meeting)) {
    ++unlinked;
    wanted[rank] = true;
    if (rank < meeting.rank)
      below.push_back(rank);
  }
  packet.number(below.size());
  for (int rank : below)
    packet.number(rank);
  lines.at(hostLine).channel.send(Port, packet);
}

void GuestMachine::callPeers(PacketReader packet, Time now) {
  fault::point("meet.ports");
  const Address &throughHost = lines.at(hostLine).place;
  for (int rank : below) {
    Address place;
    if (!place.unpack(packet.text()))
      return end(StatusFailure, "rank 0 at " + placeOf(meeting) + " does not keep to the protocol");
    // Ranks on rank 0's host are where rank 0 is.
    if (place.loopback() && !throughHost.loopback()) {
      int port = place.port();
      place = throughHost;
      place.setPort(port);
    }
    placesBelow[rank] = place;
  }
  portsSeen = true;
  peersUntil = now + meeting.limit * 3 / 4;
  for (int rank : below)
    call(placesBelow.at(rank), rank, runKey, now);
  if (unlinked == 0)
    ready();
}

/// A connection between two ranks is proven on both sides.
void GuestMachine::link(int rank, int id, Line &line) {
  line.rank = rank;
  line.reads = false; // what comes next is the links'
  links[rank] = id;
  --unlinked;
  if (isReady())
    ready();
}

void GuestMachine::ready() {
  lines.at(hostLine).channel.send(Ready, Packet());
  answerUntil = now + kAnswer;
}

} // namespace dsopt::runtime::rendezvous
