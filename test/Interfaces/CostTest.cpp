//===- CostTest.cpp - every operation says what it costs ------------------===//

#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Pipeline/RegisterAll.h"

#include <gtest/gtest.h>

#include <set>

using namespace mlir;
using namespace dsopt;

TEST(Cost, OfEveryOperationOfTheGraph) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  // Declarations, calls, whose callees are counted, and the end of a region.
  const std::set<StringRef> others = {"graph.parameter", "graph.state", "graph.cache",
                                      "graph.kernel",    "graph.run",   "graph.yield"};
  for (RegisteredOperationName op : context.getRegisteredOperationsByDialect("graph"))
    EXPECT_NE(op.hasInterface<CostedOpInterface>(), others.count(op.getStringRef()) == 1)
        << op.getStringRef().str();
}
