// Streams that are being captured into a graph.
#pragma once

struct CUstream_st;

namespace jitney::runtime {

// Whether what is put into the stream now becomes part of a graph, or would break the capture of
// another stream.
bool is_capturing(CUstream_st* stream);

// While it lives, calls of this thread that no capture admits, such as loading a kernel, do not
// invalidate captures that other threads have begun.
class RelaxedCapture {
  public:
    RelaxedCapture();
    ~RelaxedCapture();
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

  private:
    int previous_ = 0;
};

}  // namespace jitney::runtime
