//===- RendezvousHost.cpp - rank 0 gathers the ranks of a run -------------===//

#include "Comm/Hmac.h"
#include "Comm/RendezvousMachine.h"
#include "dsopt/Runtime/Fault.h"

#include <algorithm>

namespace dsopt::runtime::rendezvous {

HostMachine::HostMachine(Self self, Time now)
    : Machine(std::move(self)), start(now), end(now + meeting.limit), guests(meeting.size) {
  hosts.resize(meeting.size);
  names.resize(meeting.size);
  hosts[0] = this->self.host;
  names[0] = this->self.name;
  if (meeting.trouble.status)
    refuse(meeting.trouble.status, meeting.trouble.text);
  else if (there == meeting.size)
    welcome(now);
}

std::string HostMachine::called(int rank) const {
  return "rank " + std::to_string(rank) + " on " + names[rank];
}

void HostMachine::tick(Time now) {
  dropSilent(now);
  if (refusal) {
    // Who is late to a limit waits for nobody himself.
    refusedAt = refusedAt.value_or(now);
    done = done || told >= meeting.size - 1 || now >= std::min(end, *refusedAt + kStays);
    return;
  }
  if (!linking && foreigners.last - foreigners.first >= kForeign &&
      now - foreigners.first > kHelloLimit + seconds(1))
    return refuse(StatusInput, missing() + foreignersText());
  if (met || now < end)
    return;
  if (!linking)
    return refuse(StatusFailure, missing() + " within " + std::to_string(meeting.limit.count()) + " s" +
                                     (foreigners.count ? foreignersText() : ""));
  for (int rank = 1; rank < meeting.size; ++rank)
    if (!guests[rank].ready)
      return refuse(StatusFailure, called(rank) + " has not connected to the others in time");
}

std::string HostMachine::missing() const {
  std::string text;
  int count = 0;
  for (int rank = 1; rank < meeting.size; ++rank)
    if (guests[rank].line < 0 && ++count <= 8)
      text += (count > 1 ? ", " : "") + std::to_string(rank);
  return (count > 1 ? "ranks " : "rank ") + text + (count > 8 ? " ..." : "") + " of " +
         std::to_string(meeting.size) + (count > 1 ? " have" : " has") + " not come to " + placeOf(meeting);
}

std::string HostMachine::foreignersText() const {
  std::string text = "; who called there from " + foreigners.from;
  return text +
         (foreigners.fault == Channel::OtherKey
              ? " did not know the secret: DSOPT_SECRET or DSOPT_SECRET_FILE has to be the same on all "
                "ranks"
              : " is of another version of dsopt: it has to be the same on all ranks");
}

/// Tells one that the meeting is refused.
void HostMachine::inform(Line &line) {
  Packet packet;
  packet.number(refusal->status);
  packet.text(refusal->text);
  line.channel.send(Refused, packet);
  line.ends = true;
  ++told;
}

void HostMachine::refuse(int status, const std::string &text) {
  if (refusal || met)
    return;
  refusal = Refusal{status, text};
  for (auto &[id, line] : lines)
    if (line.rank > 0 && !line.ends)
      inform(line);
}

void HostMachine::faulty(int, Line &line, Channel::Fault fault, Time now) {
  if (fault == Channel::OtherKey || fault == Channel::OtherVersion) {
    if (foreigners.count++ == 0 || now - foreigners.last > seconds(2))
      foreigners.first = now;
    foreigners.last = now;
    foreigners.fault = fault;
    foreigners.from = line.place.text();
  }
  if (fault != Channel::Damaged || refusal)
    return;
  // Who knows the secret is a rank, and hears why.
  std::string who = line.rank > 0 ? called(line.rank) : "one of the ranks";
  line.rank = line.rank > 0 ? line.rank : meeting.size;
  line.ends = false;
  refuse(StatusFailure, "what " + who + " sent to rank 0 arrived damaged");
}

void HostMachine::lost(int, Line &line, const std::string &why, Time) {
  if (line.rank <= 0)
    return;
  if (refusal)
    return;
  ++told; // it needs no word
  refuse(StatusFailure, called(line.rank) + " ended before all ranks had met: " + why);
}

bool HostMachine::tells(int, Line &line, const std::string &why) {
  if (line.rank <= 0 || refusal)
    return false;
  refuse(StatusFailure, called(line.rank) + " was lost before all ranks had met: " + why);
  return true;
}

void HostMachine::heard(int id, Line &line, const Channel::Message &message, Time now) {
  PacketReader packet(message.bytes);
  if (line.rank < 0) {
    line.ends = message.kind != Hello;
    if (!line.ends)
      receive(id, line, packet, now);
    return;
  }
  Guest &guest = guests[line.rank];
  if (message.kind == Trouble) {
    int status = static_cast<int>(packet.number());
    std::string text = packet.text();
    if (packet.ended() && status >= StatusInput && status <= StatusInterrupted)
      return refuse(status, text);
  }
  if (message.kind == Port && linking && guest.port == 0) {
    guest.port = static_cast<int>(packet.number() & 0xffff);
    guest.below.resize(packet.count(sizeof(uint64_t)));
    bool sound = guest.port > 0;
    for (int &rank : guest.below) {
      uint64_t number = packet.number();
      sound &= number > 0 && number < static_cast<uint64_t>(line.rank);
      rank = static_cast<int>(number);
    }
    if (packet.ended() && sound) {
      if (++answered == meeting.size - 1)
        tellPorts();
      return;
    }
  }
  if (message.kind == Ready && answered == meeting.size - 1 && !guest.ready) {
    guest.ready = true;
    line.reads = false; // what comes after Go is the links'
    if (++ready < meeting.size - 1)
      return;
    links.assign(meeting.size, -1);
    for (int rank = 1; rank < meeting.size; ++rank) {
      links[rank] = guests[rank].line;
      lines.at(links[rank]).channel.send(Go, Packet());
    }
    met = done = true;
    return;
  }
  refuse(StatusFailure, called(line.rank) + " does not keep to the protocol");
}

/// A rank that knows the secret says who it is.
void HostMachine::receive(int id, Line &line, PacketReader packet, Time now) {
  int64_t rank = packet.integer(), size = packet.integer();
  std::string host = packet.text(), name = packet.text(), bytes = packet.text();
  EarlyTrouble trouble{static_cast<int>(packet.number()), packet.text()};
  Record record;
  if (!packet.ended() || !unpackRecord(bytes, record)) {
    line.ends = true;
    return;
  }
  if (refusal)
    return inform(line);
  std::string who = "rank " + std::to_string(rank) + " on " + name, problem;
  if (trouble.status)
    problem = who + ": " + trouble.text;
  else if (size != meeting.size)
    problem = who + " was started as one of " + std::to_string(size) + " ranks, rank 0 as one of " +
              std::to_string(meeting.size);
  else if (rank < 1 || rank >= meeting.size)
    problem = rank == 0 ? "rank 0 was started twice: on " + names[0] + " and on " + name
                        : who + ": expected 0 to " + std::to_string(meeting.size - 1);
  else if (guests[rank].line >= 0)
    problem = "rank " + std::to_string(rank) + " was started twice: on " + names[rank] + " and on " + name;
  else if (std::string difference = differenceOf(record, meeting.record, names[0]); !difference.empty())
    problem = who + " " + difference;
  if (!problem.empty()) {
    // Its line is told like the others'.
    line.rank = meeting.size;
    bool early = trouble.status >= StatusInput && trouble.status <= StatusInterrupted;
    return refuse(early ? trouble.status : int(StatusInput), problem);
  }
  line.rank = static_cast<int>(rank);
  guests[rank].line = id;
  hosts[rank] = host;
  names[rank] = name;
  if (++there == meeting.size)
    welcome(now);
}

/// All are there.
void HostMachine::welcome(Time now) {
  fault::point("meet.welcome");
  linking = true;
  end = now + meeting.limit;
  std::string nonce = self.nonce();
  runKey = hmac(self.key, "run " + nonce);
  if (meeting.size == 1) {
    links.assign(1, -1);
    met = done = true;
    return;
  }
  // Hosts by number: the table grows with the ranks, not with the names of their hosts.
  std::map<std::string, uint64_t> numbers;
  Packet table, packet;
  for (int rank = 0; rank < meeting.size; ++rank) {
    auto [entry, fresh] = numbers.emplace(hosts[rank], numbers.size());
    if (fresh)
      table.text(hosts[rank]);
  }
  packet.text(nonce);
  packet.number(numbers.size());
  packet.bytes += table.bytes;
  for (int rank = 0; rank < meeting.size; ++rank) {
    packet.number(numbers.at(hosts[rank]));
    packet.text(names[rank]);
  }
  for (int rank = 1; rank < meeting.size; ++rank)
    lines.at(guests[rank].line).channel.send(Welcome, packet);
}

void HostMachine::tellPorts() {
  fault::point("meet.ports");
  for (int rank = 1; rank < meeting.size; ++rank) {
    Packet packet;
    for (int below : guests[rank].below) {
      Address place = lines.at(guests[below].line).place;
      place.setPort(guests[below].port);
      packet.text(place.packed());
    }
    lines.at(guests[rank].line).channel.send(Ports, packet);
  }
}

} // namespace dsopt::runtime::rendezvous
