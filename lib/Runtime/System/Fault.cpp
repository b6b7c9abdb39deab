//===- Fault.cpp - what DSOPT_FAULT asks for ------------------------------===//

#include "dsopt/Runtime/Fault.h"

namespace dsopt::runtime::fault {

std::atomic<bool> active{false};

void strike(const char *) {}
void setRank(int) {}
void setStep(long) {}

} // namespace dsopt::runtime::fault
