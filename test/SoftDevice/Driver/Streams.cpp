//===- Streams.cpp - streams, events and recorded work --------------------===//

#include "State.h"

using namespace softdevice;

static CUevent eventOf(State &state, CUevent event) {
  require(state.events.count(event), CUDA_ERROR_INVALID_HANDLE, "this is no event");
  return event;
}

/// A node that does nothing, for the place in a stream.
static Work mark() {
  return [](std::mt19937_64 &) { return Footprint(); };
}

/// Asked again and again: that work is not done yet is no failure.
static CUresult query(const std::function<bool(State &)> &isDone) {
  bool done = true;
  CUresult status = call([&](State &state) { done = isDone(state); });
  return status == CUDA_SUCCESS && !done ? CUDA_ERROR_NOT_READY : status;
}

extern "C" {

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  return call([&](State &state) {
    require((flags & ~CU_STREAM_NON_BLOCKING) == 0, CUDA_ERROR_INVALID_VALUE, "unknown flags of a stream");
    *stream = new CUstream_st{};
    (*stream)->context = state.context();
    (*stream)->number = ++state.lastStream;
    (*stream)->isBlocking = !(flags & CU_STREAM_NON_BLOCKING);
    state.streams.insert(*stream);
  });
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return call([&](State &state) {
    require(state.streams.erase(stream), CUDA_ERROR_INVALID_HANDLE, "this is no stream");
    // What it has to do is done all the same.
    delete stream;
  });
}

CUresult cuStreamSynchronize(CUstream handle) {
  return call([&](State &state) {
    CUstream stream = state.stream(handle);
    state.refuseCapture(/*byOthers=*/stream->capture != nullptr);
    for (const NodeRef &node : stream->waits)
      state.timeline->wait(node);
    state.timeline->wait(stream->last);
  });
}

CUresult cuStreamQuery(CUstream handle) {
  return query([&](State &state) {
    CUstream stream = state.stream(handle);
    state.refuseCapture(/*byOthers=*/stream->capture != nullptr);
    return state.timeline->query(stream->last);
  });
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned) {
  return call([&](State &state) {
    CUstream stream = state.stream(handle);
    eventOf(state, event);
    state.issues += !stream->capture;
    if (event->capture) {
      require(!stream->capture || stream->capture == event->capture, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
              "an event of another recording");
      // The stream takes part in the recording from here on.
      stream->capture = event->capture;
      stream->members.insert(stream->members.end(), event->members.begin(), event->members.end());
      return;
    }
    require(!stream->capture || !event->node, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            "recorded work cannot wait for work that is not");
    // An event that was never recorded is no reason to wait.
    if (event->node)
      stream->waits.push_back(event->node);
  });
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
  return call([&](State &state) {
    *event = new CUevent_st{};
    (*event)->isTimed = !(flags & CU_EVENT_DISABLE_TIMING);
    state.events.insert(*event);
  });
}

CUresult cuEventDestroy_v2(CUevent event) {
  return call([&](State &state) {
    require(state.events.erase(event), CUDA_ERROR_INVALID_HANDLE, "this is no event");
    delete event;
  });
}

CUresult cuEventRecord(CUevent event, CUstream handle) {
  return call([&](State &state) {
    CUstream stream = state.stream(handle);
    eventOf(state, event);
    event->capture = stream->capture;
    event->members = stream->members;
    event->node = nullptr;
    if (stream->capture)
      return;
    state.submit(handle, "an event", mark());
    event->node = stream->last;
  });
}

CUresult cuEventSynchronize(CUevent event) {
  return call([&](State &state) {
    state.refuseCapture();
    state.timeline->wait(eventOf(state, event)->node);
  });
}

CUresult cuEventQuery(CUevent event) {
  return query([&](State &state) {
    state.refuseCapture();
    return state.timeline->query(eventOf(state, event)->node);
  });
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end) {
  return call([&](State &state) {
    for (CUevent event : {begin, end}) {
      require(eventOf(state, event)->node != nullptr, CUDA_ERROR_INVALID_HANDLE,
              "the event was not recorded");
      require(event->isTimed, CUDA_ERROR_INVALID_HANDLE, "the event was made without a time");
      require(event->node->isDone, CUDA_ERROR_NOT_READY, "");
    }
    *milliseconds = std::chrono::duration<float, std::milli>(end->node->doneAt - begin->node->doneAt).count();
  });
}

CUresult cuStreamBeginCapture_v2(CUstream handle, int mode) {
  return call([&](State &state) {
    CUstream stream = state.stream(handle);
    require(stream != &state.defaultStream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            "the default stream's work cannot be recorded");
    require(!stream->capture, CUDA_ERROR_ILLEGAL_STATE, "the stream's work is recorded already");
    stream->capture = std::make_shared<Graph>();
    if (mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
      stream->capture->recorder = std::this_thread::get_id();
    stream->isOrigin = true;
    stream->members.clear();
  });
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  return call([&](State &state) {
    CUstream stream = state.stream(handle);
    *graph = nullptr;
    require(stream->capture && stream->isOrigin, CUDA_ERROR_ILLEGAL_STATE,
            "no recording began in this stream");
    std::shared_ptr<Graph> capture = stream->capture;
    std::vector<bool> isJoined(capture->members.size());
    for (int member : stream->members)
      isJoined[member] = true;
    for (size_t i = capture->members.size(); i-- > 0;)
      if (isJoined[i])
        for (int earlier : capture->members[i].after)
          isJoined[earlier] = true;
    for (CUstream one : state.streams)
      if (one->capture == capture) {
        one->capture = nullptr;
        one->isOrigin = false;
        one->members.clear();
      }
    require(!capture->isBroken, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "");
    for (size_t i = 0; i < isJoined.size(); ++i)
      require(isJoined[i], CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
              capture->members[i].what + " was recorded in a stream that the first one does not wait for");
    *graph = new CUgraph_st{*capture};
    state.graphs.insert(*graph);
  });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *made, CUgraph graph, unsigned long long) {
  return call([&](State &state) {
    require(state.graphs.count(graph), CUDA_ERROR_INVALID_HANDLE, "this is no graph");
    *made = new CUgraphExec_st{graph->graph};
    state.executables.insert(*made);
  });
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream handle) {
  return call([&](State &state) {
    require(state.executables.count(executable), CUDA_ERROR_INVALID_HANDLE,
            "this is no graph that can be launched");
    CUstream stream = state.stream(handle);
    require(!stream->capture, CUDA_ERROR_NOT_SUPPORTED, "graphs in graphs are not supported");
    state.submit(handle, "the begin of a graph", mark());
    NodeRef begin = stream->last;
    std::vector<NodeRef> nodes;
    for (const Graph::Member &member : executable->graph.members) {
      std::vector<NodeRef> after{begin};
      for (int earlier : member.after)
        after.push_back(nodes[earlier]);
      nodes.push_back(state.timeline->append(member.what, after, member.stream, member.work));
    }
    stream->waits.insert(stream->waits.end(), nodes.begin(), nodes.end());
    state.submit(handle, "the end of a graph", mark());
    --state.issues; // of its two marks
  });
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  return call([&](State &state) {
    require(state.executables.erase(executable), CUDA_ERROR_INVALID_HANDLE,
            "this is no graph that can be launched");
    delete executable;
  });
}

CUresult cuGraphDestroy(CUgraph graph) {
  return call([&](State &state) {
    require(state.graphs.erase(graph), CUDA_ERROR_INVALID_HANDLE, "this is no graph");
    delete graph;
  });
}
}
