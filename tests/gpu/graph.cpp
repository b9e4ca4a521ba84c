#include "tests/gpu/graph.hpp"

#include <doctest/doctest.h>

namespace jitney::tests {

using runtime::check;

bool has_graphs() {
    const runtime::Driver& driver = cuda();
    const bool has =
        driver.cuStreamBeginCapture != nullptr && driver.cuStreamEndCapture != nullptr &&
        driver.cuGraphInstantiateWithFlags != nullptr && driver.cuGraphLaunch != nullptr &&
        driver.cuGraphExecDestroy != nullptr && driver.cuGraphDestroy != nullptr;
    if (!has) MESSAGE("left out: the driver has no graphs");
    return has;
}

GraphInstance::GraphInstance(CUgraph graph) {
    check(cuda().cuGraphInstantiateWithFlags(&exec_, graph, 0), "cuGraphInstantiateWithFlags");
}

GraphInstance::~GraphInstance() {
    if (exec_ != nullptr) cuda().cuGraphExecDestroy(exec_);
}

void GraphInstance::replay(Stream stream) const {
    check(cuda().cuGraphLaunch(exec_, stream), "cuGraphLaunch");
}

CapturedGraph::~CapturedGraph() {
    if (graph_ != nullptr) cuda().cuGraphDestroy(graph_);
}

void CapturedGraph::begin(Stream stream) {
    check(cuda().cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
          "cuStreamBeginCapture");
}

void CapturedGraph::end(Stream stream) {
    check(cuda().cuStreamEndCapture(stream, &graph_), "cuStreamEndCapture");
}

}  // namespace jitney::tests
