#include "runtime/capture.hpp"

#include "runtime/driver.hpp"

namespace jitney::runtime {

bool is_capturing(CUstream_st* stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = driver().cuStreamIsCapturing(stream, &status);
    // The legacy stream, while a stream that is ordered with it is captured.
    if (result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return true;
    check(result, "cuStreamIsCapturing");
    return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

RelaxedCapture::RelaxedCapture() {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    check(driver().cuThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode");
    previous_ = mode;
}

RelaxedCapture::~RelaxedCapture() {
    auto mode = static_cast<CUstreamCaptureMode>(previous_);
    driver().cuThreadExchangeStreamCaptureMode(&mode);
}

}  // namespace jitney::runtime
