// The decode of Hopper alone, with everything that it takes: packed queries, pages, appended keys,
// options, and lengths on the device that leave blocks of a cluster without keys.
#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

#include "jitney/backend.hpp"
#include "jitney/explain.hpp"
#include "jitney/prewarm.hpp"
#include "tests/gpu/attention_case.hpp"
#include "tests/gpu/serving_device.hpp"

namespace jitney::tests {
namespace {

constexpr const char* kKernel = "attn_decode_cluster";

// Random requests whose specializations are few.
ServingShape random_shape(Random& random) {
    static constexpr std::int64_t kDims[] = {64, 128, 128, 40, 256};
    const ServingLimits limits = {.batch = 6,
                                  .q_len = 8,
                                  .kv_len = random.chance(0.5) ? 300 : 3000,
                                  .group = 8,
                                  .page_sizes = {1, 3, 16, 24, 64}};
    ServingShape shape = random_serving_shape(random, limits, random.chance(0.4));
    shape.head_dim = random.pick(std::span<const std::int64_t>(kDims));
    shape.dtype = shape.head_dim == 64 ? DType::fp16 : DType::bf16;
    shape.causal = random.chance(0.6);
    const std::int64_t set = random.integer(0, 5);
    add_options(shape,
                {.window = set == 1,
                 .softcap = set == 2,
                 .alibi = set == 3,
                 .sinks = set == 1,
                 .mask = set == 3 || set == 4,
                 .append = set == 5 && !shape.packed},
                random);
    return shape;
}

}  // namespace

TEST_CASE("decode on Hopper: random requests, pages and options") {
    Random random = Random::fresh();
    std::vector<ServingShape> shapes;
    std::vector<std::string> specs;
    int divided = 0;
    const std::size_t wanted = is_quick() ? 60 : 400;
    for (std::size_t tries = 0; shapes.size() < wanted && tries < 10 * wanted; ++tries) {
        ServingShape shape = random_shape(random);
        ServingProblem problem(shape, random);
        const Scope scope(kKernel);
        const Explanation explanation =
            explain(serving_call<AttentionArgs>(shape, problem.views({DeviceType::cuda, 0})));
        if (explanation.chosen.empty()) continue;  // another chip, or no query
        if (explanation.splits > 1) ++divided;
        shapes.push_back(shape);
        specs.push_back(explanation.chosen);
    }
    if (shapes.empty()) return;
    CHECK(static_cast<std::size_t>(divided) > shapes.size() / 4);
    for (const PrewarmEntry& entry : prewarm(specs))
        CHECK_MESSAGE(entry.status != PrewarmStatus::failed, entry.error);
    for (const ServingShape& shape : shapes) {
        INFO(shape.text(), " ", random.text());
        ServingProblem problem(shape, random);
        const ServingDevice device(problem);
        {
            const Scope scope(kKernel);
            attention(device.args(shape));
        }
        CHECK(last_run().starts_with(kKernel));
        synchronize();
        device.check_against_reference(problem);
    }
    MESSAGE(shapes.size(), " problems, ", random.text());
}

}  // namespace jitney::tests
