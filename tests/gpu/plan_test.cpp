// Plans on the GPU: captured once, replayed with other lengths, pages and requests; and memory of
// the caller's.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "jitney/backend.hpp"
#include "jitney/plan.hpp"
#include "tests/gpu/graph.hpp"
#include "tests/gpu/serving_device.hpp"

namespace jitney::tests {
namespace {

// What a server's step has: requests that come and go, in the same tensors.
struct Form {
    bool packed;
    KeyForm keys;
    bool append = false;
    bool batch_invariant = false;
    bool all_keys = true;  // max_kv_len is left out

    ServingShape shape(Random& random) const {
        ServingShape shape;
        shape.head_dim = 128;
        shape.kv_heads = 2;
        shape.group = 4;
        shape.packed = packed;
        shape.keys = keys;
        shape.room = 1500;
        shape.page_size = keys == KeyForm::block_table || keys == KeyForm::page_list ? 16 : 1;
        shape.causal = true;
        shape.new_len = append ? 1 : 0;
        constexpr int batch = 6;
        std::int64_t left = 200;
        for (int i = 0; i < batch; ++i) {
            const bool gone = random.chance(0.3);  // a place that nobody has
            const std::int64_t rows = packed ? random.integer(0, left / 2) : 1;
            shape.q_lens.push_back(packed && gone ? 0 : rows);
            left -= shape.q_lens.back();
            shape.kv_lens.push_back(gone ? shape.new_len
                                         : random.integer(shape.new_len, shape.room));
        }
        shape.idle_rows = packed ? left : 0;
        return shape;
    }
};

std::vector<Form> forms() {
    std::vector<Form> all;
    for (const KeyForm keys : {KeyForm::padded, KeyForm::ragged, KeyForm::token_table,
                               KeyForm::block_table, KeyForm::page_list}) {
        for (const bool packed : {false, true})
            all.push_back({packed, keys});
    }
    all.push_back({.packed = false, .keys = KeyForm::block_table, .append = true});
    all.push_back({.packed = false, .keys = KeyForm::page_list, .batch_invariant = true});
    all.push_back({.packed = false, .keys = KeyForm::padded, .all_keys = false});
    return all;
}

AttentionArgs args_of(const Form& form, const ServingDevice& device, const ServingShape& shape) {
    AttentionArgs args = device.args(shape);
    args.batch_invariant = form.batch_invariant;
    // Far less than there are: the choice is a poor one, and the result right.
    if (!form.all_keys) args.max_kv_len = 100;
    return args;
}

}  // namespace

TEST_CASE("a captured plan follows lengths, pages and requests that it is replayed with") {
    if (!has_graphs()) return;
    Random random = Random::fresh();
    INFO(random.text());
    for (const Form& form : forms()) {
        for (const bool own : {false, true}) {
            const TestStream stream;
            ServingProblem first(form.shape(random), random);
            ServingDevice device(first);
            AttentionArgs args = args_of(form, device, first.shape);
            const AttentionPlan plan(args);
            INFO(plan.explanation().chosen, own ? ", the caller's workspace" : "");
            const OwnWorkspace workspace(plan.workspace_bytes());
            if (own) args.workspace = workspace.view();
            const Graph graph(stream, [&] { plan.run(args, stream); });
            CHECK(last_run() == plan.explanation().chosen);
            for (int replay = 0; replay < (is_quick() ? 2 : 4); ++replay) {
                ServingProblem next(form.shape(random), random);
                INFO(next.shape.text());
                device.upload(next);
                synchronize();
                graph.replay(stream);
                stream.synchronize();
                device.check_against_reference(next);
            }
        }
    }
}

TEST_CASE("a plan runs without a graph too, on the tensors of any layer") {
    Random random = Random::fresh();
    INFO(random.text());
    const Form form = {.packed = true, .keys = KeyForm::block_table};
    ServingProblem planned(form.shape(random), random);
    const AttentionPlan plan(ServingDevice(planned).args(planned.shape));  // its tensors are gone
    for (int layer = 0; layer < 3; ++layer) {
        ServingProblem problem(form.shape(random), random);
        const ServingDevice device(problem);
        plan.run(device.args(problem.shape));
        synchronize();
        device.check_against_reference(problem);
    }
}

TEST_CASE("two instantiations of a graph live side by side with the caller's workspace") {
    if (!has_graphs()) return;
    Random random = Random::fresh();
    INFO(random.text());
    const TestStream stream;
    const Form form = {.packed = false, .keys = KeyForm::block_table};
    ServingProblem first(form.shape(random), random);
    ServingDevice device(first);
    AttentionArgs args = device.args(first.shape);
    const Scope scope("attn_decode_mma");  // parts merge in clusters without a workspace elsewhere
    const AttentionPlan plan(args);
    REQUIRE(plan.workspace_bytes() > 0);
    const OwnWorkspace workspace(plan.workspace_bytes());
    args.workspace = workspace.view();
    const CapturedGraph graph(stream, [&] {
        plan.run(args, stream);
        plan.run(args, stream);  // after the first, in the same memory
    });
    const GraphInstance one(graph);
    const GraphInstance other(graph);
    for (int round = 0; round < 4; ++round) {
        ServingProblem next(form.shape(random), random);
        device.upload(next);
        synchronize();
        (round % 2 == 0 ? one : other).replay(stream);
        (round % 2 == 0 ? other : one).replay(stream);
        stream.synchronize();
        device.check_against_reference(next);
    }
}

TEST_CASE("calls of every kind share a workspace, one after the other") {
    Random random = Random::fresh();
    INFO(random.text());
    std::vector<ServingProblem> problems;
    std::vector<ServingDevice> devices;
    std::vector<AttentionArgs> calls;
    std::size_t bytes = 0;
    const std::vector<Form> all = forms();
    for (const Form& form : all) {
        problems.emplace_back(form.shape(random), random);
        devices.emplace_back(problems.back());
        calls.push_back(args_of(form, devices.back(), problems.back().shape));
        bytes = std::max(bytes, workspace_bytes(calls.back()));
    }
    const OwnWorkspace workspace(bytes);
    for (AttentionArgs& args : calls) {
        args.workspace = workspace.view();
        attention(args);
    }
    synchronize();
    for (std::size_t i = 0; i < all.size(); ++i) {
        INFO(problems[i].shape.text());
        devices[i].check_against_reference(problems[i]);
    }
}

}  // namespace jitney::tests
