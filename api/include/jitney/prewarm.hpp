// Compiling ahead of the first call: no GPU is needed, only NVRTC.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "jitney/error.hpp"
#include "jitney/export.hpp"

namespace jitney {

enum class PrewarmStatus { compiled, cached, failed };

struct PrewarmEntry {
    std::string spec;  // attn_prefill_mma<head_dim=128,...>@sm_90a
    PrewarmStatus status = PrewarmStatus::failed;
    double milliseconds = 0;  // of looking for it and of compiling it
    std::uint64_t bytes = 0;  // of the machine code
    std::string error;        // where it failed: one sentence
};

struct PrewarmOptions {
    int jobs = 0;  // compiles at a time; 0: as many as there are cores
    // Called after each entry, one call at a time, with how many are done of how many.
    std::function<void(const PrewarmEntry&, std::size_t done, std::size_t total)> progress;
};

// Compiles each specialization into the cache unless it is there. Entries come back in the order of
// the texts; one that fails does not stop the others. Throws Error only for jobs below 0, and for a
// text that is no specialization of a GPU's (sm_90a, not sm_90), or that names a logits function of
// which this process has made no LogitsFunction (logits.hpp), before anything is compiled.
JITNEY_API std::vector<PrewarmEntry> prewarm(std::span<const std::string> specs,
                                             const PrewarmOptions& options = {});

}  // namespace jitney
