//===- ActionInterfaces.td - what passes ask of any action ------*- tablegen -*-===//
//
// Waits, lifetimes, simulation and verification follow from these answers alone; none
// has a default.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_EXEC_ACTIONINTERFACES
#define DSOPT_DIALECT_EXEC_ACTIONINTERFACES

include "mlir/IR/OpBase.td"

def Exec_ActionOpInterface : OpInterface<"ActionOpInterface"> {
  let cppNamespace = "::dsopt::exec";
  let description = [{ One thing that a rank does in a step, on a stream. }];
  let methods = [
    InterfaceMethod<"the stream that it is on", "::mlir::FlatSymbolRefAttr", "getStreamAttr">,
    InterfaceMethod<"the kind of stream that can run it", "::dsopt::exec::StreamKind", "getStreamKind">,
    InterfaceMethod<[{appends the bytes that it reads and writes on any rank; emits an error and fails where it
      names what is not there, or what does not fit}], "::llvm::LogicalResult", "collectAccesses",
      (ins "::dsopt::exec::ActionContext &":$context)>,
    InterfaceMethod<"the segment that it runs, null if it runs none", "::mlir::FlatSymbolRefAttr",
      "getCalledSegment">,
    InterfaceMethod<"what it sends, receives or copies, if it does", "std::optional<::dsopt::exec::MovedBytes>",
      "getMoved">,
    InterfaceMethod<"whether it hands on what it reads at a bucket's padded length", "bool", "readsPadding">,
    InterfaceMethod<"what it is in a message", "std::string", "describeAction">,
    InterfaceMethod<"what its event is called where it is printed", "std::string", "getEventName">];
}

def Exec_CommunicationOpInterface : OpInterface<"CommunicationOpInterface", [Exec_ActionOpInterface]> {
  let cppNamespace = "::dsopt::exec";
  let description = [{ An action with other ranks: those that its communicator names. }];
  let methods = [
    InterfaceMethod<"the communicator", "::mlir::FlatSymbolRefAttr", "getCommunicatorAttr">];
}

def Exec_TransferOpInterface : OpInterface<"TransferOpInterface", [Exec_CommunicationOpInterface]> {
  let cppNamespace = "::dsopt::exec";
  let description = [{ An action with one member of its communicator: a send, or a receive. }];
  let methods = [
    InterfaceMethod<"the member's place in the communicator", "uint64_t", "getPeer">,
    InterfaceMethod<"the name of what is sent", "::llvm::StringRef", "getTag">,
    InterfaceMethod<"the micro-batch that it is of, if it is of one", "std::optional<uint64_t>", "getMicroBatch">];
  let extraSharedClassDeclaration = [{
    /// The tag of one transfer: with the micro-batch.
    std::string getLabel() {
      std::string label = $_op.getTag().str();
      if (auto number = $_op.getMicroBatch())
        label += ":" + std::to_string(*number);
      return label;
    }
  }];
}

def Exec_CollectiveOpInterface : OpInterface<"CollectiveOpInterface", [Exec_CommunicationOpInterface]> {
  let cppNamespace = "::dsopt::exec";
  let description = [{ An action that all members of its communicator join, in one order. }];
  let methods = [
    InterfaceMethod<"its place among the program's collectives", "uint64_t", "getOrder">,
    InterfaceMethod<"sets the place", "void", "setOrder", (ins "uint64_t":$order)>];
}

#endif // DSOPT_DIALECT_EXEC_ACTIONINTERFACES
