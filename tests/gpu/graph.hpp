// CUDA graphs of what a test puts into a stream.
#pragma once

#include "tests/gpu/device.hpp"

namespace jitney::tests {

// Says so where the driver has none.
bool has_graphs();

class GraphInstance {
  public:
    explicit GraphInstance(CUgraph graph);
    GraphInstance(const GraphInstance&) = delete;
    GraphInstance& operator=(const GraphInstance&) = delete;
    ~GraphInstance();
    void replay(Stream stream) const;

  private:
    CUgraphExec exec_ = nullptr;
};

class CapturedGraph {
  public:
    template <class Body>
    CapturedGraph(Stream stream, const Body& body) {
        begin(stream);
        body();
        end(stream);
    }
    CapturedGraph(const CapturedGraph&) = delete;
    CapturedGraph& operator=(const CapturedGraph&) = delete;
    ~CapturedGraph();
    operator CUgraph() const { return graph_; }

  private:
    static void begin(Stream stream);
    void end(Stream stream);

    CUgraph graph_ = nullptr;
};

// Captured, and instantiated once.
class Graph {
  public:
    template <class Body>
    Graph(Stream stream, const Body& body) : graph_(stream, body), instance_(graph_) {}
    void replay(Stream stream) const { instance_.replay(stream); }

  private:
    CapturedGraph graph_;
    GraphInstance instance_;
};

}  // namespace jitney::tests
