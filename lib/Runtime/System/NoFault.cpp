//===- NoFault.cpp - in place of Fault.cpp in what is installed -----------===//
//
// Nothing that users run can be asked to fail. Whoever links this object takes nothing of
// Fault.cpp from the archive: the two define the same.
//
//===----------------------------------------------------------------------===//

#include "Strike.h"
#include "dsopt/Runtime/Fault.h"

namespace dsopt::runtime::fault {

std::atomic<bool> active{false};

void start() {}
void start(const char *) {}
void strike(const char *, const char *) {}
Strike strikeCall(Call) { return {}; }
void setRank(int) {}
void setStep(long) {}

bool Strike::ends() const { return false; }
void Strike::flip(void *, size_t) const {}

} // namespace dsopt::runtime::fault
