// prewarm [ARCH [CONFIG]]: compiles what serving a model calls, for an architecture that need not
// be here (sm_90a unless it is named), and keeps it in the cache. CONFIG is a model's config.json;
// without it, the model is one of 32 query heads over 8 KV heads of 128 elements.
#include <jitney/error.hpp>
#include <jitney/prewarm.hpp>
#include <jitney/serving.hpp>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view kConfig = R"({
    "model_type": "llama", "torch_dtype": "bfloat16", "num_hidden_layers": 32,
    "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128
})";

const char* text_of(jitney::PrewarmStatus status) {
    switch (status) {
        case jitney::PrewarmStatus::compiled:
            return "compiled";
        case jitney::PrewarmStatus::cached:
            return "cached";
        case jitney::PrewarmStatus::failed:
            break;
    }
    return "failed";
}

void show(const jitney::ServingModel& model) {
    for (const jitney::ServingLayer& layer : model.layers) {
        std::printf("%s: %d heads over %d of %d elements, %d of them rotated%s\n",
                    layer.kind.c_str(), layer.q_heads, layer.kv_heads, layer.head_dim,
                    layer.rotary_dim, layer.causal ? ", causal" : "");
    }
    for (const std::string& note : model.notes)
        std::printf("note: %s\n", note.c_str());
}

int prewarm(std::string_view arch, std::string_view config) {
    const jitney::ServingModel model = jitney::serving_model(config);
    show(model);
    int failed = 0;
    for (const std::string& field : model.unserved) {
        std::fprintf(stderr, "error: %s\n", field.c_str());
        ++failed;
    }
    std::vector<std::string> unserved;
    const std::vector<std::string> specs =
        jitney::serving_specs(model, arch, jitney::KvCache::paged, &unserved);
    for (const std::string& layers : unserved) {
        std::fprintf(stderr, "error: %s\n", layers.c_str());
        ++failed;
    }
    for (const jitney::PrewarmEntry& entry : jitney::prewarm(specs)) {
        std::printf("%s %s (%.0f ms)\n", text_of(entry.status), entry.spec.c_str(),
                    entry.milliseconds);
        if (entry.status != jitney::PrewarmStatus::failed) continue;
        std::fprintf(stderr, "error: %s\n", entry.error.c_str());
        ++failed;
    }
    return failed == 0 ? 0 : 1;
}

std::string text_in(const char* path) {
    std::ifstream file(path);
    if (!file) throw jitney::Error(jitney::ErrorCode::io, std::string("can't open ") + path);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return prewarm(argc > 1 ? argv[1] : "sm_90a",
                       argc > 2 ? text_in(argv[2]) : std::string(kConfig));
    } catch (const jitney::Error& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 2;
    }
}
