//===- FuzzRendezvous.cpp - whatever may come where ranks meet ------------===//
//
// An input is a side to talk to and what is said there: raw bytes of somebody who
// knows no secret, or packets of somebody who does and is out of his mind.
//
//===----------------------------------------------------------------------===//

#include "Comm/Hmac.h"
#include "Comm/RendezvousMachine.h"
#include "Fuzz.h"

#include <memory>

using namespace dsopt::runtime;
using namespace dsopt::runtime::rendezvous;

namespace {

/// The input, piece by piece.
struct Input {
  std::string_view rest;
  int byte() {
    if (rest.empty())
      return 0;
    int value = static_cast<unsigned char>(rest[0]);
    rest.remove_prefix(1);
    return value;
  }
  std::string text(size_t bytes) {
    std::string result(rest.substr(0, bytes));
    rest.remove_prefix(result.size());
    return result;
  }
};

Meeting meetingOf(int rank) {
  Meeting meeting;
  meeting.rank = rank;
  meeting.size = 4;
  meeting.address = "10.0.0.1";
  meeting.port = 29500;
  meeting.secret = "a secret of the fuzzer";
  meeting.limit = seconds(5);
  meeting.record = {{"option -lr", "-lr is", "0.1"}};
  return meeting;
}

std::string nonceOf(int number) { return std::string(kProofBytes, static_cast<char>(number)); }

Self selfOf(const Meeting &meeting) {
  return {meeting, "host", "name", keyOf(meeting), jobOf(meeting), [] { return nonceOf(1); }};
}

/// The other end of a line of `machine`, which knows the key.
struct Other {
  Machine &machine;
  int line;
  Channel channel;

  void exchange(Time now) {
    for (int turn = 0; turn < 4; ++turn) {
      if (std::string bytes = std::exchange(channel.out, ""); !bytes.empty())
        machine.received(line, bytes, now);
      auto found = machine.lines.find(line);
      std::string bytes = found == machine.lines.end() ? "" : std::exchange(found->second.channel.out, "");
      for (size_t part; !bytes.empty() && (part = std::min(channel.wants(), bytes.size())) > 0;
           bytes.erase(0, part)) {
        channel.receive(bytes.substr(0, part));
        Channel::Message message;
        while (channel.next(message)) {
        }
      }
    }
  }
};

/// A packet that a rank might send, or its beginning, or something else.
Packet packetOf(Input &input, int &kind) {
  int form = input.byte();
  kind = input.byte() % 12;
  Packet packet;
  if (form % 4 == 0) {
    packet.bytes = input.text(input.byte());
    return packet;
  }
  switch (kind) {
  case Hello:
    packet.number(input.byte() % 6);
    packet.number(form % 8 == 1 ? input.byte() : 4);
    packet.text(input.text(input.byte() % 8));
    packet.text(input.text(input.byte() % 8));
    packet.text(form % 8 == 2 ? input.text(input.byte()) : packRecord(meetingOf(0).record));
    packet.number(form % 8 == 3 ? input.byte() : 0);
    packet.text("");
    break;
  case Welcome:
    packet.text(nonceOf(9));
    packet.number(1);
    packet.text("host");
    for (int rank = 0; rank < 4; ++rank) {
      packet.number(input.byte() % 8 ? 0 : input.byte());
      packet.text("name");
    }
    break;
  case Port:
    packet.number(form % 8 == 1 ? input.byte() : 4711);
    packet.number(input.byte() % 4);
    for (int i = input.byte() % 4; i > 0; --i)
      packet.number(input.byte() % 5);
    break;
  case Ports: {
    Address address;
    address.unpack(std::string("4\x3c\x73\x0a\x00\x00\x01", 7));
    for (int i = input.byte() % 4; i > 0; --i)
      packet.text(input.byte() % 4 ? address.packed() : input.text(input.byte() % 20));
    break;
  }
  case Refused:
  case Trouble:
    packet.number(input.byte() % 5);
    if (kind == Refused)
      packet.number(input.byte() % 2);
    packet.text(input.text(input.byte() % 32));
    break;
  case Peer:
    packet.number(input.byte() % 6);
    break;
  default:
    break;
  }
  if (form % 16 == 5)
    packet.bytes.resize(packet.bytes.size() / 2);
  return packet;
}

void talk(Machine &machine, std::vector<Other> &others, Input input, const std::function<void()> &serve) {
  Time now{};
  while (!input.rest.empty() && !machine.done) {
    int choice = input.byte();
    Other &other = others[choice % others.size()];
    now += milliseconds(choice % 64);
    if (choice % 16 == 15) {
      machine.closed(other.line, "gone", now);
    } else if (choice % 16 == 14) {
      machine.received(other.line, input.text(input.byte()), now);
    } else if (other.channel.proven()) {
      int kind = 0;
      Packet packet = packetOf(input, kind);
      other.channel.send(kind, packet);
    }
    for (Other &each : others)
      each.exchange(now);
    serve();
    machine.tick(now);
  }
  for (int i = 0; i < 1000 && !machine.done; ++i)
    machine.tick(now += milliseconds(100));
  if (!machine.done || machine.met == machine.refusal.has_value())
    std::abort();
}

Packet helloOf(int rank) {
  Packet packet;
  packet.number(rank);
  packet.number(4);
  packet.text("host");
  packet.text("name");
  packet.text(packRecord(meetingOf(0).record));
  packet.number(0);
  packet.text("");
  return packet;
}

void toHost(Input input) {
  Meeting meeting = meetingOf(0);
  HostMachine machine(selfOf(meeting), Time());
  std::vector<Other> others;
  for (int i = 1; i < 4; ++i) {
    Channel channel(Channel::Caller, keyOf(meeting), jobOf(meeting), nonceOf(i + 1), kTableBytes);
    others.push_back({machine, machine.arrived(Address(), Time()), std::move(channel)});
    others.back().exchange(Time());
  }
  // As far as sane ranks come.
  int sane = input.byte() % 3;
  for (int i = 0; i < 3 && sane > 0; ++i) {
    others[i].channel.send(Hello, helloOf(i + 1));
    others[i].exchange(Time());
  }
  for (int i = 0; i < 2 && sane > 1; ++i) {
    Packet port;
    port.number(4711);
    port.number(i);
    if (i)
      port.number(1);
    others[i].channel.send(Port, port);
    others[i].exchange(Time());
  }
  talk(machine, others, input, [] {});
}

void toGuest(Input input) {
  Meeting meeting = meetingOf(2);
  GuestMachine machine(selfOf(meeting), {Address()}, Time());
  machine.tick(Time());
  std::vector<Other> others;
  auto answer = [&](const std::string &key) {
    for (int id : std::exchange(machine.calls, {})) {
      machine.connected(id, Time());
      others.push_back(
          {machine, id, Channel(Channel::Listener, key, jobOf(meeting), nonceOf(2), kTableBytes)});
      others.back().exchange(Time());
    }
  };
  answer(keyOf(meeting));
  if (input.byte() % 2) {
    Packet welcome;
    welcome.text(nonceOf(9));
    welcome.number(1);
    welcome.text("host");
    for (int rank = 0; rank < 4; ++rank) {
      welcome.number(0);
      welcome.text("name");
    }
    others[0].channel.send(Welcome, welcome);
    others[0].exchange(Time());
  }
  talk(machine, others, input, [&] {
    bool more = machine.wantsPort;
    if (more)
      machine.listening(4711, Time());
    if (others.size() < 16)
      answer(machine.runKey);
    machine.calls.clear();
    if (!more || others.size() >= 16)
      return;
    Channel channel(Channel::Caller, machine.runKey, jobOf(meeting), nonceOf(3), kTableBytes);
    others.push_back({machine, machine.arrived(Address(), Time()), std::move(channel)});
    others.back().exchange(Time());
  });
}

void toChannel(Channel::Side side, Input input) {
  Channel channel(side, "key", 1, nonceOf(1), 1000);
  std::string bytes = input.text(input.rest.size());
  if (input.rest.size() % 2 && side == Channel::Listener) // past the greeting
    bytes = Channel(Channel::Caller, "key", 1, nonceOf(2), 100).out + bytes;
  for (size_t part; !bytes.empty() && (part = std::min(channel.wants(), bytes.size())) > 0;
       bytes.erase(0, part))
    channel.receive(bytes.substr(0, part));
  if (channel.proven())
    std::abort(); // nobody guesses a key
}

} // namespace

std::vector<std::string> dsopt::test::fuzzSeeds() { return orders(600); }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Input input{{reinterpret_cast<const char *>(data), size}};
  Record record;
  switch (input.byte() % 8) {
  case 0:
    toChannel(Channel::Listener, input);
    break;
  case 1:
    toChannel(Channel::Caller, input);
    break;
  case 2:
    unpackRecord(std::string(input.rest), record);
    break;
  case 3:
  case 4:
  case 5:
    toHost(input);
    break;
  default:
    toGuest(input);
  }
  return 0;
}
