//===- RendezvousTest.cpp - how ranks meet, without sockets ---------------===//

#include "Comm/Hmac.h"
#include "RendezvousSimulation.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

using namespace dsopt::runtime;
using namespace dsopt::runtime::test;

namespace {

/// DSOPT_TEST_SEEDS says how many of each kind.
int seeds(int byDefault) {
  const char *given = std::getenv("DSOPT_TEST_SEEDS");
  return given ? std::atoi(given) : byDefault;
}

/// All are linked to all they asked for, under one key.
void expectMet(Simulation &simulation) {
  int size = static_cast<int>(simulation.meetings.size());
  for (int rank = 0; rank < size; ++rank) {
    Machine &machine = simulation.machine(rank);
    ASSERT_TRUE(machine.met) << "rank " << rank << ": "
                             << (machine.refusal ? machine.refusal->text : "not done");
    EXPECT_EQ(machine.runKey, simulation.machine(0).runKey);
    EXPECT_EQ(machine.hosts, simulation.machine(0).hosts);
    EXPECT_EQ(machine.names[rank], "n" + std::to_string(rank));
    for (int other = 0; other < size; ++other) {
      bool linked = machine.links[other] >= 0;
      EXPECT_EQ(linked, simulation.machine(other).links[rank] >= 0);
    }
  }
}

/// All the living end with one status and text; `words` are in it.
void expectRefused(Simulation &simulation, int status, const std::string &words) {
  for (size_t rank = 0; rank < simulation.meetings.size(); ++rank) {
    if (simulation.isDead(static_cast<int>(rank)))
      continue;
    Machine &machine = simulation.machine(static_cast<int>(rank));
    ASSERT_TRUE(machine.refusal) << "rank " << rank;
    EXPECT_EQ(machine.refusal->status, status) << machine.refusal->text;
    EXPECT_NE(machine.refusal->text.find(words), std::string::npos) << machine.refusal->text;
    EXPECT_EQ(machine.refusal->quiet, rank > 0); // rank 0 says it
  }
}

TEST(Rendezvous, AllMeet) {
  for (int size : {2, 3, 8, 33}) {
    Simulation simulation(size, size, {});
    ASSERT_TRUE(simulation.run());
    expectMet(simulation);
    for (int rank = 0; rank < size; ++rank)
      EXPECT_EQ(std::count(simulation.machine(rank).links.begin(), simulation.machine(rank).links.end(), -1),
                1);
  }
}

TEST(Rendezvous, OnlyPeersAreLinked) {
  Simulation simulation(1, 32, {});
  for (Meeting &meeting : simulation.meetings) {
    meeting.peers = {0};
    for (int step = 1; step < 32; step *= 2)
      meeting.peers.push_back(meeting.rank ^ step);
  }
  ASSERT_TRUE(simulation.run());
  expectMet(simulation);
  for (int rank = 1; rank < 32; ++rank) {
    bool isPower = (rank & (rank - 1)) == 0; // then rank 0 is one of the five
    EXPECT_EQ(std::count_if(simulation.machine(rank).links.begin(), simulation.machine(rank).links.end(),
                            [](int line) { return line >= 0; }),
              isPower ? 5 : 6);
  }
}

TEST(Rendezvous, BytesGrowWithTheRanks) {
  auto bytes = [](int size) {
    Simulation simulation(1, size, {});
    for (Meeting &meeting : simulation.meetings)
      meeting.peers = {0};
    EXPECT_TRUE(simulation.run());
    return static_cast<double>(simulation.delivered) / size;
  };
  // A rank hears of all ranks: 30 bytes of each here.
  EXPECT_LT(bytes(256), 256 * 40 + 2000);
}

TEST(Rendezvous, ADifferenceIsToldByName) {
  Simulation simulation(1, 4, {});
  simulation.meetings[3].record[0].value = "0.2";
  ASSERT_TRUE(simulation.run(seconds(3)));
  expectRefused(simulation, StatusInput,
                "rank 3 on n3 was started with other options than rank 0 on n0: -lr is 0.2, there 0.1");
}

TEST(Rendezvous, AnotherNumberOfRanksIsSaid) {
  Simulation simulation(1, 4, {});
  simulation.meetings[2].size = 5;
  ASSERT_TRUE(simulation.run(seconds(3)));
  expectRefused(simulation, StatusInput, "rank 2 on n2 was started as one of 5 ranks, rank 0 as one of 4");
}

TEST(Rendezvous, ARankThatCameTwiceIsSaid) {
  Simulation simulation(1, 4, {});
  simulation.meetings[3].rank = 1;
  ASSERT_TRUE(simulation.run(seconds(3)));
  expectRefused(simulation, StatusInput, "rank 1 was started twice: on n");
}

TEST(Rendezvous, TroubleEndsAllAtOnce) {
  for (int rank : {0, 2}) {
    Simulation simulation(1, 4, {});
    simulation.meetings[rank].trouble = {StatusFailure, "d.npz: cannot be read"};
    ASSERT_TRUE(simulation.run(seconds(3)));
    expectRefused(simulation, StatusFailure,
                  rank ? "rank 2 on n2: d.npz: cannot be read" : "d.npz: cannot be read");
  }
}

TEST(Rendezvous, AnotherSecretIsSaid) {
  Simulation simulation(1, 3, {});
  simulation.meetings[2].secret = "another text";
  ASSERT_TRUE(simulation.run());
  EXPECT_EQ(simulation.machine(2).refusal->status, StatusInput);
  EXPECT_NE(simulation.machine(2).refusal->text.find("do not know the same secret"), std::string::npos);
  EXPECT_NE(simulation.machine(0).refusal->text.find("rank 2 of 3 has not come"), std::string::npos);
  EXPECT_NE(simulation.machine(0).refusal->text.find("did not know the secret"), std::string::npos);
}

/// Who calls again and again with another secret is a rank that is missing: nobody waits for it to the end.
TEST(Rendezvous, AnotherSecretEndsAllSoon) {
  for (int rank : {0, 2}) {
    Simulation simulation(1, 4, {});
    for (Meeting &meeting : simulation.meetings)
      meeting.limit = seconds(60);
    simulation.meetings[rank].secret = "another text";
    ASSERT_TRUE(simulation.run(seconds(14))) << rank;
    for (int other = 0; other < 4; ++other) {
      ASSERT_TRUE(simulation.machine(other).refusal) << other;
      EXPECT_EQ(simulation.machine(other).refusal->status, StatusInput);
      EXPECT_NE(simulation.machine(other).refusal->text.find("DSOPT_SECRET"), std::string::npos);
    }
  }
}

/// A visitor with another secret who soon leaves keeps nobody from waiting for a rank that is late.
TEST(Rendezvous, AShortVisitEndsNothing) {
  Faults faults;
  faults.strangers = 40;
  Simulation simulation(5, 4, faults);
  simulation.faults.dies = 3;
  for (Meeting &meeting : simulation.meetings)
    meeting.limit = seconds(20);
  EXPECT_FALSE(simulation.run(seconds(18)));
  ASSERT_TRUE(simulation.run(seconds(6)));
  EXPECT_NE(simulation.machine(0).refusal->text.find("within 20 s"), std::string::npos);
}

/// What is wrong with one is not kept for another that never comes.
TEST(Rendezvous, NobodyIsWaitedForToBeTold) {
  Simulation simulation(1, 4, {});
  for (Meeting &meeting : simulation.meetings)
    meeting.limit = seconds(60);
  simulation.meetings[2].record[0].value = "0.2";
  simulation.faults.dies = 3;
  ASSERT_TRUE(simulation.run(seconds(8)));
  expectRefused(simulation, StatusInput, "-lr is 0.2, there 0.1");
}

TEST(Rendezvous, AMissingRankIsNamed) {
  Simulation simulation(1, 4, {});
  simulation.faults.dies = 3;
  ASSERT_TRUE(simulation.run(seconds(9)));
  EXPECT_EQ(simulation.machine(0).refusal->text, "rank 3 of 4 has not come to 10.0.0.1:29500 within 5 s");
}

TEST(Rendezvous, OnceAllAreThereRankOneSaysThatRankZeroDied) {
  int welcomed = 0;
  for (int when = 300; when < 700; when += 5) {
    Faults faults;
    faults.dies = 0;
    faults.dieAt = milliseconds(when);
    Simulation simulation(3, 6, faults);
    ASSERT_TRUE(simulation.run());
    for (int rank = 1; rank < 6; ++rank) {
      Machine &machine = simulation.machine(rank);
      bool isConnected =
          !machine.links.empty() && std::count(machine.links.begin(), machine.links.end(), -1) <= 2;
      EXPECT_EQ(machine.met, isConnected);
      if (machine.met || !machine.refusal || machine.names.empty())
        continue;
      ++welcomed;
      EXPECT_EQ(machine.refusal->quiet, rank > 1) << machine.refusal->text;
    }
  }
  EXPECT_GT(welcomed, 2);
}

TEST(Rendezvous, WhatArrivesDamagedIsSaid) {
  Faults faults;
  faults.damages = 2;
  Simulation simulation(1, 4, faults);
  ASSERT_TRUE(simulation.run(seconds(3)));
  expectRefused(simulation, StatusFailure, "sent to rank 0 arrived damaged");
}

TEST(Rendezvous, WhatArrivesDamagedAtAnotherRankIsSaidByRankZero) {
  Faults faults;
  faults.mishears = 2;
  Simulation simulation(1, 4, faults);
  ASSERT_TRUE(simulation.run(seconds(3)));
  expectRefused(simulation, StatusFailure,
                "rank 2 and rank 0 at 10.0.0.1:29500 do not understand each other: a packet is damaged");
}

TEST(Rendezvous, ACallThatFailsIsSaidByRankZero) {
  for (int rank : {0, 2}) {
    Faults faults;
    faults.breaks = rank;
    Simulation simulation(1, 4, faults);
    ASSERT_TRUE(simulation.run(seconds(3)));
    expectRefused(simulation, StatusFailure, "before all ranks had met: the test wants it");
    expectRefused(simulation, StatusFailure, rank ? "rank 2 on n2 lost rank 0" : " was lost");
  }
}

TEST(Rendezvous, WhoIsConnectedLeavesWhatBreaksToTheLinks) {
  for (int when = 0; when < 1200; when += 5) {
    Faults faults;
    faults.breaks = 2;
    faults.breakAt = milliseconds(when);
    Simulation simulation(1, 4, faults);
    ASSERT_TRUE(simulation.run(seconds(20)));
    Machine &machine = simulation.machine(2);
    if (!machine.refusal || !machine.met)
      continue;
    // Rank 0 may have met the others: it hears of it through the link.
    EXPECT_GE(machine.links[0], 0);
    EXPECT_EQ(std::count(machine.links.begin(), machine.links.end(), -1), 1);
    return;
  }
  FAIL() << "the moment between ready and go was not struck";
}

TEST(Rendezvous, WhoIsReadySaysNoMoreToRankZero) {
  int ready = 0, before = 0;
  for (int when = 0; when < 1200; when += 5) {
    Faults faults;
    faults.stops = 2;
    faults.stopAt = milliseconds(when);
    Simulation simulation(1, 4, faults);
    ASSERT_TRUE(simulation.run(seconds(20)));
    EXPECT_NE(simulation.stoppedReady, simulation.saidWhenStopped || !simulation.machine(2).refusal) << when;
    ready += simulation.stoppedReady;
    before += simulation.saidWhenStopped;
  }
  EXPECT_GT(ready, 0);
  EXPECT_GT(before, 0);
}

TEST(Rendezvous, StrangersStopNobody) {
  for (int seed = 0; seed < seeds(20); ++seed) {
    Faults faults;
    faults.strangers = 200;
    Simulation simulation(seed, 16, faults);
    ASSERT_TRUE(simulation.run()) << seed;
    expectMet(simulation);
  }
}

/// More silent visitors than there is room for: ranks still come through.
TEST(Rendezvous, SilenceTakesNoRoom) {
  Faults faults;
  faults.strangers = 2000;
  faults.strangersWithin = milliseconds(500);
  faults.delay = 5;
  Simulation simulation(7, 8, faults);
  ASSERT_TRUE(simulation.run(seconds(8)));
  expectMet(simulation);
}

/// Where the system has no room, silent visitors go, the oldest first, and never a rank.
TEST(Rendezvous, RoomIsMadeForRanks) {
  Simulation simulation(1, 3, {});
  simulation.faults.dies = 2;
  simulation.run(milliseconds(1000));
  Machine &host = simulation.machine(0);
  ASSERT_EQ(host.lines.size(), 1u); // rank 1
  int first = host.arrived(Address(), simulation.now),
      second = host.arrived(Address(), simulation.now + seconds(1));
  EXPECT_TRUE(host.makeRoom());
  EXPECT_FALSE(host.lines.count(first));
  EXPECT_TRUE(host.lines.count(second));
  EXPECT_TRUE(host.makeRoom());
  EXPECT_FALSE(host.makeRoom());
  EXPECT_EQ(host.lines.size(), 1u);
}

TEST(Rendezvous, ConnectionsThatFailAreMadeAgain) {
  for (int seed = 0; seed < seeds(20); ++seed) {
    Faults faults;
    faults.refused = 0.3;
    faults.delay = 60;
    Simulation simulation(seed, 16, faults);
    ASSERT_TRUE(simulation.run()) << seed;
    expectMet(simulation);
  }
}

/// Whatever happens, all the living end, met or with a reason.
TEST(Rendezvous, NobodyWaitsForEver) {
  int met = 0, refused = 0;
  for (int seed = 0; seed < seeds(6); ++seed) {
    std::mt19937_64 random(seed);
    Faults faults;
    faults.refused = 0.05 * static_cast<double>(random() % 4);
    faults.cut = seed % 3 ? 0 : 0.002 * static_cast<double>(random() % 10);
    faults.strangers = static_cast<int>(random() % 60);
    faults.delay = 1 + static_cast<int>(random() % 80);
    if (seed % 2) {
      faults.dies = static_cast<int>(random() % 64);
      faults.dieAt = milliseconds(random() % 2000);
    }
    Simulation simulation(seed, 64, faults);
    ASSERT_TRUE(simulation.run(seconds(120))) << "seed " << seed;
    for (int rank = 0; rank < 64; ++rank) {
      if (simulation.isDead(rank))
        continue;
      Machine &machine = simulation.machine(rank);
      ASSERT_TRUE(machine.met || machine.refusal) << "seed " << seed << ", rank " << rank;
      if (machine.refusal) {
        EXPECT_FALSE(machine.refusal->text.empty());
      }
      met += machine.met;
      refused += !machine.met;
    }
  }
  EXPECT_GT(met, 0);
  EXPECT_GT(refused, 0);
}

//===----------------------------------------------------------------------===//
// The channel
//===----------------------------------------------------------------------===//

void shake(Channel &caller, Channel &listener) {
  for (int turn = 0; turn < 4; ++turn) {
    for (auto [from, to] : {std::pair(&caller, &listener), std::pair(&listener, &caller)}) {
      std::string bytes = std::exchange(from->out, "");
      for (size_t part; !bytes.empty() && (part = std::min(to->wants(), bytes.size())) > 0;
           bytes.erase(0, part))
        to->receive(bytes.substr(0, part));
    }
  }
}

TEST(Channel, BothSidesProveTheKey) {
  std::string one = randomBytes(), other = randomBytes();
  for (bool same : {true, false}) {
    Channel caller(Channel::Caller, "key", 1, one, 100),
        listener(Channel::Listener, same ? "key" : "kez", 1, other, 100);
    shake(caller, listener);
    EXPECT_EQ(caller.proven(), same);
    EXPECT_EQ(listener.proven(), same);
    EXPECT_EQ(listener.fault(), same ? Channel::None : Channel::OtherKey);
  }
}

/// Two jobs of one secret at one place are kept apart.
TEST(Channel, AnotherJobIsTold) {
  Channel caller(Channel::Caller, "key", 1, randomBytes(), 100),
      listener(Channel::Listener, "key", 2, randomBytes(), 100);
  shake(caller, listener);
  EXPECT_EQ(caller.fault(), Channel::OtherJob);
  EXPECT_EQ(listener.fault(), Channel::OtherJob);
}

/// Each side of two versions knows it from the other's first bytes; what only begins alike is no rank.
TEST(Channel, AnotherVersionIsTold) {
  Channel caller(Channel::Caller, "key", 1, randomBytes(), 100),
      listener(Channel::Listener, "key", 1, randomBytes(), 100),
      other(Channel::Listener, "key", 1, randomBytes(), 100);
  std::string greeting = caller.out;
  size_t version = greeting.find('\n') - 1;
  greeting[version] = '9';
  listener.receive(greeting);
  EXPECT_EQ(listener.fault(), Channel::OtherVersion);
  std::string answer = listener.out;
  ASSERT_EQ(answer, caller.out.substr(0, answer.size()));
  answer[version] = '9';
  caller.receive(answer);
  EXPECT_EQ(caller.fault(), Channel::OtherVersion);
  other.receive("dsopt rants 3\n" + greeting);
  EXPECT_EQ(other.fault(), Channel::NoRank);
}

/// A listener says nothing that depends on its key before the caller has proven that he knows it.
TEST(Channel, AListenerTellsStrangersNothing) {
  std::string nonce = randomBytes(), answers[2];
  for (int i = 0; i < 2; ++i) {
    Channel caller(Channel::Caller, "guess", 1, nonce, 100),
        listener(Channel::Listener, i ? "key" : "kez", 1, nonce, 100);
    shake(caller, listener);
    answers[i] = listener.out;
    EXPECT_EQ(caller.fault(), Channel::OtherKey);
    EXPECT_EQ(answers[i], answers[0]);
  }
}

/// A rank believes no rank 0 that only says it knows the key.
TEST(Channel, ACallerWantsProofToo) {
  Channel caller(Channel::Caller, "key", 1, randomBytes(), 100),
      listener(Channel::Listener, "guess", 1, randomBytes(), 100);
  listener.receive(std::exchange(caller.out, ""));
  caller.receive(std::exchange(listener.out, ""));
  caller.receive("Y");
  caller.receive(randomBytes());
  EXPECT_FALSE(caller.proven());
  EXPECT_EQ(caller.fault(), Channel::OtherKey);
}

/// Who only repeats what he heard is no rank.
TEST(Channel, WhatWasSaidOnceProvesNothing) {
  Channel caller(Channel::Caller, "key", 1, randomBytes(), 100),
      listener(Channel::Listener, "key", 1, randomBytes(), 100);
  std::string said = caller.out;
  listener.receive(std::exchange(caller.out, ""));
  caller.receive(std::exchange(listener.out, ""));
  said += caller.out;
  Channel again(Channel::Listener, "key", 1, randomBytes(), 100);
  again.receive(said.substr(0, again.wants()));
  again.receive(said.substr(said.size() - kProofBytes));
  EXPECT_EQ(again.fault(), Channel::OtherKey);
}

TEST(Channel, AChangedPacketIsDamaged) {
  for (size_t at = 0; at < 8 + 5 + 16; ++at) {
    Channel caller(Channel::Caller, "key", 1, randomBytes(), 100),
        listener(Channel::Listener, "key", 1, randomBytes(), 100);
    shake(caller, listener);
    Packet packet;
    packet.bytes = "hello";
    caller.send(3, packet);
    caller.out[at] = static_cast<char>(caller.out[at] ^ 1);
    caller.out += std::string(200, 'x');
    shake(caller, listener);
    Channel::Message message;
    EXPECT_FALSE(listener.next(message)) << at;
    EXPECT_EQ(listener.fault(), Channel::Damaged) << at;
  }
}

/// No byte is taken that comes after what the meeting wants.
TEST(Channel, WhatFollowsIsLeft) {
  Channel caller(Channel::Caller, "key", 1, randomBytes(), 100),
      listener(Channel::Listener, "key", 1, randomBytes(), 100);
  shake(caller, listener);
  caller.send(3, Packet());
  EXPECT_EQ(listener.wants(), 8u);
  listener.receive(caller.out.substr(0, 8));
  EXPECT_EQ(listener.wants(), 16u);
  listener.receive(caller.out.substr(8));
  EXPECT_EQ(listener.wants(), 0u);
}

/// Only ranks above that want a link, each once; rank 0 and ranks below are called, never callers.
TEST(Rendezvous, OnlyRanksAboveMayCall) {
  Meeting meeting;
  meeting.rank = 2;
  meeting.size = 6;
  meeting.peers = {0, 3, 4};
  meeting.limit = seconds(5);
  Time now{};
  Address place = resolveHost("127.0.0.1")[0];
  GuestMachine guest({meeting, "host", "n2", keyOf(meeting), jobOf(meeting), randomBytes}, {place}, now);
  guest.tick(now);
  ASSERT_EQ(guest.calls.size(), 1u);
  int id = guest.calls[0];
  guest.connected(id, now);
  // The other side of a line.
  auto talk = [&](Channel &channel, int line) {
    for (int turn = 0; turn < 4; ++turn) {
      std::string bytes = std::exchange(guest.lines.at(line).channel.out, "");
      for (size_t part; !bytes.empty() && (part = std::min(channel.wants(), bytes.size())) > 0;
           bytes.erase(0, part))
        channel.receive(bytes.substr(0, part));
      guest.received(line, std::exchange(channel.out, ""), now);
    }
  };
  Channel host(Channel::Listener, keyOf(meeting), jobOf(meeting), randomBytes(), 1000);
  talk(host, id);
  Channel::Message hello;
  ASSERT_TRUE(host.next(hello));
  Packet welcome;
  welcome.text("the run's nonce");
  welcome.number(1);
  welcome.text("host");
  for (int rank = 0; rank < 6; ++rank) {
    welcome.number(0);
    welcome.text("n" + std::to_string(rank));
  }
  host.send(Welcome, welcome);
  talk(host, id);
  ASSERT_TRUE(guest.wantsPort);
  guest.listening(29500, now);
  host.send(Ports, Packet());
  talk(host, id);
  ASSERT_FALSE(guest.refusal) << guest.refusal->text;
  auto calls = [&](int64_t rank) {
    int line = guest.arrived(place, now);
    Channel caller(Channel::Caller, guest.runKey, jobOf(meeting), randomBytes(), 1000);
    talk(caller, line);
    Packet packet;
    packet.number(rank);
    caller.send(Peer, packet);
    talk(caller, line);
    return !guest.lines.at(line).ends;
  };
  for (int64_t rank : {-1, 0, 1, 2, 5, 6, 1000000})
    EXPECT_FALSE(calls(rank)) << rank;
  EXPECT_TRUE(calls(3));
  EXPECT_FALSE(calls(3));
  EXPECT_FALSE(guest.refusal);
  EXPECT_EQ(std::count(guest.links.begin(), guest.links.end(), -1), 5);
  EXPECT_TRUE(calls(4));
}

//===----------------------------------------------------------------------===//
// Records, packets
//===----------------------------------------------------------------------===//

TEST(Record, DifferencesAreTold) {
  const RecordEntry lr{"option lr", "-lr is", "0.1"}, bytes{"data 0 size", "d.npz has", "1,250 bytes"};
  struct Case {
    Record record, first;
    const char *text;
  } cases[] = {
      {{lr, bytes}, {lr, bytes}, ""},
      {{}, {}, ""},
      // What a rank calls its file is its own affair.
      {{{"data 0 size", "e.npz has", "1,250 bytes"}}, {bytes}, ""},
      {{lr, {"data 0 size", "d.npz has", "1,234 bytes"}},
       {lr, bytes},
       "reads other data than rank 0 on n: d.npz has 1,234 bytes, there 1,250 bytes"},
      {{{"option lr", "-lr is", "1"}},
       {lr},
       "was started with other options than rank 0 on n: -lr is 1, there 0.1"},
      {{{"program", "it is", "a"}},
       {{"program", "it is", "b"}},
       "runs another program than rank 0 on n: it is a, there b"},
      {{{"eval-data files", "-eval-data names", "1 file"}},
       {{"weights 0 size", "w has", "1 file"}},
       "measures its loss on other data than rank 0 on n: -eval-data names 1 file, there w has 1 file"},
      {{{"build", "hash", "a"}},
       {{"build", "hash", "b"}},
       "runs another build of the program than rank 0 on n: hash a, there b"},
      {{{"weights 0 size", "w has", "a"}},
       {{"weights 0 size", "w has", "b"}},
       "starts from other weights than rank 0 on n: w has a, there b"},
      {{{"eval-data 0 size", "w has", "a"}},
       {{"eval-data 0 size", "w has", "b"}},
       "measures its loss on other data than rank 0 on n: w has a, there b"},
      {{lr, bytes},
       {lr},
       "reads other data than rank 0 on n: d.npz has 1,250 bytes, of which rank 0 knows nothing"},
      {{lr}, {lr, bytes}, "reads other data than rank 0 on n: d.npz has 1,250 bytes there"},
  };
  for (const Case &one : cases) {
    EXPECT_EQ(differenceOf(one.record, one.first, "n"), one.text);
    Record back;
    EXPECT_TRUE(unpackRecord(packRecord(one.record), back));
    EXPECT_EQ(differenceOf(back, one.record, "n"), "");
  }
  Record record;
  std::string packed = packRecord({lr, bytes});
  for (size_t size = 0; size < packed.size(); ++size)
    EXPECT_FALSE(unpackRecord(packed.substr(0, size), record)) << size;
}

TEST(Address, PackedAndBack) {
  for (const char *name : {"127.0.0.1", "::1", "10.1.2.3"}) {
    Address address = resolveHost(name)[0], back;
    address.setPort(4711);
    ASSERT_TRUE(back.unpack(address.packed()));
    EXPECT_EQ(back.text(), name);
    EXPECT_EQ(back.port(), 4711);
    EXPECT_FALSE(back.unpack(address.packed() + "x"));
    EXPECT_FALSE(back.unpack(""));
  }
}

} // namespace
