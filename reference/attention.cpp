#include "reference/attention.hpp"

#include <cmath>
#include <string>

#include "reference/attention_core.hpp"
#include "reference/attention_rules.hpp"
#include "reference/attention_sources.hpp"
#include "reference/check.hpp"

namespace jitney::reference {

namespace {

void check(const Attention& call) {
    require_heads(call.q, "q");
    require_heads(call.k, "k");
    require_heads(call.v, "v");
    require_heads(call.out, "out");
    const auto& q = call.q.shape;
    const auto& k = call.k.shape;
    require(q[3] > 0, "head_dim is " + std::to_string(q[3]) + "; it must be at least 1");
    require_shape(call.k, "k", {q[0], k[1], k[2], q[3]});
    require_shape(call.v, "v", {q[0], k[1], k[2], call.v.shape[3]});
    require_shape(call.out, "out", {q[0], q[1], q[2], call.v.shape[3]});
    require(k[2] > 0 ? q[2] % k[2] == 0 : q[2] == 0,
            "q has " + std::to_string(q[2]) + " heads and k has " + std::to_string(k[2]) +
                "; the heads of k must divide those of q");
    if (call.lse) {
        require_shape(*call.lse, "lse", {q[0], q[2], q[1]});
        require(call.lse->dtype == DType::fp32, "lse must be fp32");
        require_host(*call.lse, "lse");
    }
}

}  // namespace

void attention(const Attention& call) {
    check(call);
    const auto& q = call.q.shape;
    MaskRules rules{call.causal, std::nullopt};
    if (call.mask) rules.mask.emplace(*call.mask, q[0], q[2], q[1], call.k.shape[1]);
    const double scale = call.scale.value_or(1.0 / std::sqrt(static_cast<double>(q[3])));
    attend(DenseQueries{{call.q}, {call.out}, call.lse}, DenseKeys{{call.k}, {call.v}}, rules,
           scale);
}

}  // namespace jitney::reference
