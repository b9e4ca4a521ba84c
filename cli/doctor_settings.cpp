// The cache directory and the environment variables.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/doctor.hpp"
#include "jitney/cache.hpp"
#include "jitney/operations.hpp"

namespace jitney::cli {

namespace {

// ", or chmod ...": what the cache knows to mend its refusal with.
std::string text_of_mend(const cache::LayerState& state) {
    return state.mend.empty() ? std::string() : "; to mend that, " + state.mend;
}

struct Variable {
    std::string_view name;
    std::vector<std::string_view> values;     // those that can be meant; empty: any
    std::vector<std::string_view> also = {};  // others that are taken
};

std::vector<Variable> variables() {
    std::vector<std::string_view> kernels;
    for (const OperationInfo& operation : operations())
        kernels.insert(kernels.end(), operation.kernels.begin(), operation.kernels.end());
    return {{"JITNEY_BACKEND", {"jit", "reference"}},
            {"JITNEY_CACHE_DIR", {}},
            {"JITNEY_CACHE_LOCK_TIMEOUT_MS", {}},
            {"JITNEY_CACHE_MAX_BYTES", {}},
            {"JITNEY_CACHE_TRUST", {}},
            {"JITNEY_FORCE", kernels},
            {"JITNEY_JIT", {"on", "off"}, {"1", "0"}},
            {"JITNEY_LIBCUDA", {}},
            {"JITNEY_LIBNVRTC", {}},
            {"JITNEY_LOG", {"debug", "info", "warn", "off"}},
            {"JITNEY_NUM_THREADS", {}}};
}

// Those of others that change what Jitney finds.
constexpr std::array<std::string_view, 7> kForeign = {
    "CONDA_PREFIX",    "CUDA_HOME",   "CUDA_PATH",     "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH", "VIRTUAL_ENV", "XDG_CACHE_HOME"};

void examine_value(Diagnosis& diagnosis, const std::string& name, const std::string& value) {
    const std::vector<Variable> known = variables();
    const auto variable = std::find_if(known.begin(), known.end(),
                                       [&name](const Variable& each) { return each.name == name; });
    if (variable == known.end()) {
        std::vector<std::string_view> names;
        for (const Variable& each : known)
            names.push_back(each.name);
        diagnosis.note(fmt::format("{} is no variable of Jitney, which reads {}: unset it", name,
                                   fmt::join(names, ", ")));
        return;
    }
    if (name == "JITNEY_NUM_THREADS") {
        const std::string problem = thread_count_problem();
        if (!problem.empty()) diagnosis.fault(problem);
    }
    const auto& values = variable->values;
    const auto has = [&value](const std::vector<std::string_view>& texts) {
        return std::find(texts.begin(), texts.end(), value) != texts.end();
    };
    if (!value.empty() && !values.empty() && !has(values) && !has(variable->also)) {
        diagnosis.fault(fmt::format("{} is \"{}\", and has no effect: set it to one of {}", name,
                                    value, fmt::join(values, ", ")));
    }
}

}  // namespace

void examine_cache(Diagnosis& diagnosis) {
    // What the environment says and can't be meant.
    Cache store([&diagnosis](std::string_view text) { diagnosis.fault(std::string(text)); });
    const cache::Statistics statistics = store.stat();
    const cache::LayerState* own = nullptr;
    Json layers = Json::array();
    for (const cache::LayerState& layer : statistics.layers) {
        for (const cache::BadEntry& each : layer.refused) {
            diagnosis.fault(fmt::format("the cache directory {} is not used: it {}; mend that",
                                        each.path, each.reason));
        }
        if (layer.writable) {
            own = &layer;
            continue;
        }
        layers.push_back({{"path", layer.root},
                          {"exists", layer.exists},
                          {"trusted", layer.trusted},
                          {"reason", layer.refusal},
                          {"entries", layer.entries},
                          {"bytes", layer.bytes}});
        diagnosis.fact("  layer", fmt::format("{}, {} entr{}", layer.root, layer.entries,
                                              plural(layer.entries, "y", "ies")));
        if (!layer.refusal.empty()) {
            diagnosis.fault(
                fmt::format("the cache layer {} is not used: it {}; mend that, or take it out of "
                            "JITNEY_CACHE_DIR{}",
                            layer.root, layer.refusal, text_of_mend(layer)));
        } else if (!layer.exists) {
            diagnosis.note(fmt::format("the cache layer {} does not exist", layer.root));
        }
    }
    for (const std::string& trusted : store.idle_trust()) {
        diagnosis.note(
            fmt::format("JITNEY_CACHE_TRUST names {}, which is no cache directory, and trusts "
                        "nothing by that: it takes the names of JITNEY_CACHE_DIR, letter by letter",
                        trusted));
    }
    const std::string reason = own != nullptr ? store.why_unwritable() : "no directory is named";
    // What is there is read even where nothing can be added to it.
    const bool read = own != nullptr && own->exists && own->refusal.empty();
    diagnosis.cached = statistics.entries != 0;
    diagnosis.json["cache"] = {{"path", own != nullptr ? Json(own->root) : Json(nullptr)},
                               {"usable", reason.empty() || read},
                               {"writable", reason.empty()},
                               {"reason", reason},
                               {"exists", own != nullptr && own->exists},
                               {"trusted", own != nullptr && own->trusted},
                               {"entries", own != nullptr ? own->entries : 0},
                               {"bytes", own != nullptr ? own->bytes : 0},
                               {"max_bytes", statistics.max_bytes},
                               {"layers", std::move(layers)}};
    if (own == nullptr) {
        diagnosis.fact("cache", "none");
        return;
    }
    diagnosis.fact("cache", fmt::format("{}, {} entr{}, {} of {}", own->root, own->entries,
                                        plural(own->entries, "y", "ies"), text_of_bytes(own->bytes),
                                        text_of_bytes(statistics.max_bytes)));
    if (!reason.empty() && read) {
        diagnosis.fault(
            fmt::format("nothing can be kept in the cache directory {}: {}; its entries are used, "
                        "and each process compiles anew what is not among them, until that is "
                        "mended or JITNEY_CACHE_DIR begins with a directory that can be written",
                        own->root, reason));
    } else if (!reason.empty()) {
        diagnosis.fault(
            fmt::format("the cache directory {} is not used: {}; each process compiles anew until "
                        "that is mended or JITNEY_CACHE_DIR names a directory of your own{}",
                        own->root, reason, text_of_mend(*own)));
    }
}

void examine_environment(Diagnosis& diagnosis) {
    Json section = Json::object();
    std::vector<std::pair<std::string, std::string>> found;
    for (char** at = ::environ; at != nullptr && *at != nullptr; ++at) {
        const std::string_view text = *at;
        const std::size_t equals = text.find('=');
        if (equals == std::string_view::npos) continue;
        const std::string_view name = text.substr(0, equals);
        const bool foreign = std::find(kForeign.begin(), kForeign.end(), name) != kForeign.end();
        if (foreign || name.starts_with("JITNEY_"))
            found.emplace_back(name, text.substr(equals + 1));
    }
    std::sort(found.begin(), found.end());
    for (const auto& [name, value] : found) {
        section[name] = value;
        diagnosis.fact(name, value);
        if (name.starts_with("JITNEY_")) examine_value(diagnosis, name, value);
    }
    diagnosis.json["environment"] = std::move(section);
}

}  // namespace jitney::cli
