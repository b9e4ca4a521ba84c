// What a model calls is what was prewarmed for it: configurations of many types, the facts of their
// documentation, and calls of the shapes that follow from these, with a driver that launches
// nothing and compiling switched off.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "jitney/append_kv.hpp"
#include "jitney/attention.hpp"
#include "jitney/backend.hpp"
#include "jitney/merge_states.hpp"
#include "jitney/prewarm.hpp"
#include "jitney/rotary.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/api/model_cases.hpp"

namespace jitney::tests {
namespace {

constexpr const char* kArch = "";  // the GPU that is here

std::vector<ModelCase> all_cases() {
    std::vector<ModelCase> cases = decoder_cases();
    for (ModelCase& each : other_cases())
        cases.push_back(std::move(each));
    return cases;
}

ServingModel read(const ModelCase& model, DType dtype = DType::bf16) {
    ServingOptions options;
    options.dtype = dtype;
    return serving_model(model.config, options);
}

LayerFacts facts_of(const ServingLayer& layer) {
    const auto has = [&layer](RotaryStyle style) {
        return std::count(layer.rotary_styles.begin(), layer.rotary_styles.end(), style) == 1;
    };
    return {.heads = layer.q_heads,
            .kv_heads = layer.kv_heads,
            .head_dim = layer.head_dim,
            .part = layer.part,
            .window_left = layer.window_left,
            .window_right = layer.window_right,
            .rotary_dim = layer.rotary_dim,
            .half_split = has(RotaryStyle::half_split),
            .interleaved = has(RotaryStyle::interleaved),
            .softcap = layer.softcap,
            .alibi = layer.alibi,
            .sinks = layer.sinks};
}

std::string text_of(const LayerFacts& facts) {
    std::string text;
    for (const int number :
         {facts.heads, facts.kv_heads, facts.head_dim, static_cast<int>(facts.part),
          facts.window_left, facts.window_right, facts.rotary_dim, int{facts.half_split},
          int{facts.interleaved}, int{facts.softcap}, int{facts.alibi}, int{facts.sinks}}) {
        text += std::to_string(number) + " ";
    }
    return text;
}

// The calls of one kind of layers. Nobody looks at what the addresses hold.
class Calls {
  public:
    // `specs` is all that was prewarmed for the model.
    Calls(const LayerFacts& layer, DType dtype, KvCache cache, const std::set<std::string>& specs)
        : layer_(layer), dtype_(dtype), cache_(cache), specs_(specs) {}

    void run() {
        for (const std::int64_t batch : {1, 3, 64}) {
            for (const std::int64_t length : {1, 2, 16, 17, 64, 65, 300, 4000}) {
                dense(batch, length);
                ragged(batch, length);
                if (layer_.part == ServingPart::decoder && length <= 64) append(batch, length);
                if (layer_.part != ServingPart::encoder) append_ragged(batch, length);
                rotate(batch, length);
            }
        }
        if (layer_.part != ServingPart::encoder) merge();
    }

  private:
    static constexpr std::int64_t kKeys = 8192;
    static constexpr std::int64_t kPage = 16;

    // What ran is the model's own, not another's that lies in the same cache.
    void check_own() const {
        if (!specs_.contains(last_run())) FAIL_CHECK(last_run() << " was not prewarmed");
    }
    void attend(const AttentionArgs& args) const {
        attention(args);
        check_own();
    }

    Tensor tensor(DType dtype, std::initializer_list<std::int64_t> shape) {
        std::int64_t bytes = size_of(dtype);
        for (const std::int64_t size : shape)
            bytes *= size;
        const std::uintptr_t address = next_;
        next_ += static_cast<std::uintptr_t>(bytes + 511) / 256 * 256;
        return Tensor::contiguous(reinterpret_cast<void*>(address), dtype, shape,
                                  {DeviceType::cuda, 0});
    }
    Tensor elements(std::initializer_list<std::int64_t> shape) { return tensor(dtype_, shape); }
    Tensor indices(std::initializer_list<std::int64_t> shape) {
        return tensor(DType::int32, shape);
    }

    template <class Args>
    void set_cache(Args& args, std::int64_t batch) {
        args.kv_lens = indices({batch});
        if (cache_ == KvCache::padded) {
            args.k = elements({batch, kKeys, layer_.kv_heads, layer_.head_dim});
            args.v = elements({batch, kKeys, layer_.kv_heads, layer_.head_dim});
            return;
        }
        const std::int64_t pages = batch * kKeys / kPage;
        args.k = elements({pages, kPage, layer_.kv_heads, layer_.head_dim});
        args.v = elements({pages, kPage, layer_.kv_heads, layer_.head_dim});
        args.block_table = indices({batch, kKeys / kPage});
    }

    AttentionArgs options() {
        AttentionArgs args;
        args.causal = layer_.part == ServingPart::decoder;
        args.window_left = layer_.window_left;
        args.window_right = layer_.window_right;
        if (layer_.softcap) args.softcap = 50.0F;
        if (layer_.alibi) args.alibi_slopes = tensor(DType::fp32, {layer_.heads});
        if (layer_.sinks) args.sinks = tensor(DType::fp32, {layer_.heads});
        return args;
    }

    AttentionArgs over_cache(std::int64_t batch, std::int64_t length) {
        AttentionArgs args = options();
        args.q = elements({batch, length, layer_.heads, layer_.head_dim});
        args.out = elements({batch, length, layer_.heads, layer_.head_dim});
        set_cache(args, batch);
        return args;
    }

    void dense(std::int64_t batch, std::int64_t length) {
        if (layer_.part != ServingPart::encoder) {
            attend(over_cache(batch, length));
            return;
        }
        AttentionArgs args = options();
        args.q = elements({batch, length, layer_.heads, layer_.head_dim});
        args.out = elements({batch, length, layer_.heads, layer_.head_dim});
        args.k = elements({batch, length, layer_.kv_heads, layer_.head_dim});
        args.v = elements({batch, length, layer_.kv_heads, layer_.head_dim});
        attend(args);
        args.kv_lens = indices({batch});  // padded at the end
        attend(args);
    }

    void ragged(std::int64_t batch, std::int64_t length) {
        const std::int64_t total = batch * length;
        AttentionArgs args = options();
        args.q = elements({total, layer_.heads, layer_.head_dim});
        args.out = elements({total, layer_.heads, layer_.head_dim});
        args.qo_indptr = indices({batch + 1});
        AttentionArgs own = args;
        own.k = elements({total, layer_.kv_heads, layer_.head_dim});
        own.v = elements({total, layer_.kv_heads, layer_.head_dim});
        own.kv_indptr = indices({batch + 1});
        attend(own);
        if (layer_.part == ServingPart::encoder) return;
        set_cache(args, batch);
        attend(args);
    }

    void append(std::int64_t batch, std::int64_t length) {
        AttentionArgs args = over_cache(batch, length);
        args.new_k = elements({batch, length, layer_.kv_heads, layer_.head_dim});
        args.new_v = elements({batch, length, layer_.kv_heads, layer_.head_dim});
        attend(args);
    }

    std::vector<RotaryStyle> styles() const {
        std::vector<RotaryStyle> styles;
        if (layer_.half_split) styles.push_back(RotaryStyle::half_split);
        if (layer_.interleaved) styles.push_back(RotaryStyle::interleaved);
        return styles;
    }

    void append_ragged(std::int64_t batch, std::int64_t length) {
        const std::int64_t total = batch * length;
        AppendKvArgs args;
        args.new_k = elements({total, layer_.kv_heads, layer_.head_dim});
        args.new_v = elements({total, layer_.kv_heads, layer_.head_dim});
        args.new_indptr = indices({batch + 1});
        set_cache(args, batch);
        append_kv(args);
        check_own();
        for (const RotaryStyle style : styles()) {
            args.style = style;
            args.cos = tensor(DType::fp32, {kKeys, layer_.rotary_dim / 2});
            args.sin = tensor(DType::fp32, {kKeys, layer_.rotary_dim / 2});
            args.positions = tensor(DType::int64, {total});
            append_kv(args);
            check_own();
            args.q = elements({total, layer_.heads, layer_.head_dim});
            args.q_out = args.q;
            append_kv(args);
            check_own();
        }
    }

    void rotate(std::int64_t batch, std::int64_t length) {
        for (const RotaryStyle style : styles()) {
            RotaryArgs args;
            args.style = style;
            args.q = args.q_out = elements({batch, length, layer_.heads, layer_.head_dim});
            args.k = elements({batch, length, layer_.kv_heads, layer_.head_dim});
            args.k_out = args.k;
            args.cos = tensor(DType::fp32, {kKeys, layer_.rotary_dim / 2});
            args.sin = tensor(DType::fp32, {kKeys, layer_.rotary_dim / 2});
            rotary_emb(args);
            check_own();
            args.q_out = elements({batch, length, layer_.heads, layer_.head_dim});
            args.k_out = elements({batch, length, layer_.kv_heads, layer_.head_dim});
            rotary_emb(args);
            check_own();
        }
    }

    void merge() {
        std::vector<PartialState> parts;
        for (int i = 0; i < 2; ++i) {
            parts.push_back({elements({7, layer_.heads, layer_.head_dim}),
                             tensor(DType::fp32, {7, layer_.heads})});
        }
        MergeStatesArgs args;
        args.parts = parts;
        args.out = elements({7, layer_.heads, layer_.head_dim});
        merge_states(args);
        check_own();
    }

    LayerFacts layer_;
    DType dtype_;
    KvCache cache_;
    const std::set<std::string>& specs_;
    std::uintptr_t next_ = std::uintptr_t{1} << 44;
};

void launch_nothing(const char*, void**) {}

// Each form of a case: what it is served in, and how its cache lies.
template <class Body>
void for_each_form(const Body& body) {
    for (const ModelCase& model : all_cases()) {
        INFO("config: ", std::string(model.config));
        body(model, DType::bf16, KvCache::paged);
        body(model, DType::fp16, KvCache::padded);
        body(model, DType::fp32, KvCache::paged);
    }
}

}  // namespace

TEST_CASE("configurations of many types mean what their documentation says") {
    std::set<std::string> types;
    for (const ModelCase& model : all_cases()) {
        INFO("config: ", std::string(model.config));
        const ServingModel read_model = read(model);
        types.insert(read_model.model_type);
        CHECK(read_model.unserved.empty());
        CHECK(read_model.layers.size() == model.layers.size());
        for (const ServingLayer& layer : read_model.layers) {
            CHECK(layer.unserved == "");
            CHECK(layer.v_head_dim == layer.head_dim);
            CHECK(layer.causal == (layer.part == ServingPart::decoder));
            const LayerFacts facts = facts_of(layer);
            CHECK_MESSAGE(std::count(model.layers.begin(), model.layers.end(), facts) == 1,
                          "read as " << text_of(facts));
        }
    }
    CHECK(types.size() >= 40);
}

TEST_CASE("scenario: prewarm all models" * doctest::skip()) {
    std::set<std::string> specs;
    for_each_form([&specs](const ModelCase& model, DType dtype, KvCache cache) {
        for (std::string& spec : serving_specs(read(model, dtype), kArch, cache))
            specs.insert(std::move(spec));
    });
    const std::vector<std::string> all(specs.begin(), specs.end());
    for (const PrewarmEntry& entry : prewarm(all))
        CHECK(entry.error == "");
}

TEST_CASE("scenario: call all models" * doctest::skip()) {
    fake_cuda().kernel = &launch_nothing;
    for_each_form([](const ModelCase& model, DType dtype, KvCache cache) {
        const std::vector<std::string> list = serving_specs(read(model, dtype), kArch, cache);
        const std::set<std::string> specs(list.begin(), list.end());
        CHECK(specs.size() == list.size());
        for (const LayerFacts& facts : model.layers) {
            INFO("layer: ", text_of(facts));
            CHECK_NOTHROW(Calls(facts, dtype, cache, specs).run());
        }
    });
    CHECK(fake_cuda().launches > 10000);
}

TEST_CASE("what models call was prewarmed for them") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: prewarm all models", fake_gpu(cache)));
    REQUIRE_PASSED(run("scenario: call all models", fake_gpu(cache, {{"JITNEY_JIT", "off"}})));
}

}  // namespace jitney::tests
