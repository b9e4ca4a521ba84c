#include "tests/support/problems.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <sstream>

#include "tests/support/mask_pattern.hpp"

namespace jitney::tests {

namespace {

std::vector<std::int64_t> mask_shape(const AttentionShape& s) {
    switch (s.mask) {
        case MaskKind::keys:
            return {s.batch, s.kv_len};
        case MaskKind::queries:
            return {s.batch, s.q_len, s.kv_len};
        case MaskKind::shared_heads:
            return {s.batch, 1, s.q_len, s.kv_len};
        case MaskKind::heads:
            return {s.batch, s.q_heads, s.q_len, s.kv_len};
        case MaskKind::one_batch:
            return {1, s.q_heads, s.q_len, s.kv_len};
        case MaskKind::none:
            break;
    }
    return {};
}

const char* name_of_mask(MaskKind kind) {
    static constexpr std::array kNames{"none",         "keys",  "queries",
                                       "shared heads", "heads", "one batch"};
    return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace

std::string AttentionShape::text() const {
    std::ostringstream text;
    text << "batch " << batch << ", q_len " << q_len << ", kv_len " << kv_len << ", heads "
         << q_heads << "/" << kv_heads << ", head_dim " << head_dim << ", dtype "
         << static_cast<int>(dtype) << ", mask " << name_of_mask(mask)
         << (causal ? ", causal" : "");
    if (scale) text << ", scale " << *scale;
    return text.str();
}

AttentionLayouts AttentionLayouts::apart(const Layout& all) {
    AttentionLayouts layouts;
    std::int64_t number = 0;
    for (Layout* layout : {&layouts.out, &layouts.v, &layouts.q, &layouts.k})
        *layout = set_apart(all, 4, number++);
    return layouts;
}

AttentionProblem::AttentionProblem(const AttentionShape& problem, Random& random,
                                   const AttentionLayouts& layouts)
    : shape(problem),
      q(shape.dtype, {shape.batch, shape.q_len, shape.q_heads, shape.head_dim}, layouts.q),
      k(shape.dtype, {shape.batch, shape.kv_len, shape.kv_heads, shape.head_dim}, layouts.k),
      v(shape.dtype, {shape.batch, shape.kv_len, shape.kv_heads, shape.head_dim}, layouts.v),
      out(shape.dtype, {shape.batch, shape.q_len, shape.q_heads, shape.head_dim}, layouts.out),
      lse(DType::fp32, {shape.batch, shape.q_heads, shape.q_len}) {
    q.fill_normal(random);
    k.fill_normal(random);
    v.fill_normal(random);
    if (shape.mask != MaskKind::none) {
        mask.emplace(DType::boolean, mask_shape(shape));
        mask->fill(MaskPattern(random, shape.kv_len));
    }
}

bool AttentionProblem::is_seen(std::int64_t batch, std::int64_t kv_head, std::int64_t key) const {
    if (!mask) return shape.q_len > 0;  // the last query sees all, causal or not
    const std::int64_t group = shape.q_heads / shape.kv_heads;
    const bool by_head = shape.mask == MaskKind::heads || shape.mask == MaskKind::one_batch;
    const std::int64_t rows = shape.mask == MaskKind::keys ? 1 : shape.q_len;
    const std::int64_t entry = shape.mask == MaskKind::one_batch ? 0 : batch;
    for (std::int64_t i = 0; i < (by_head ? group : 1); ++i) {
        const std::int64_t head = kv_head * group + i;
        const std::int64_t first =
            entry * (by_head ? shape.q_heads : 1) * rows + (by_head ? head * rows : 0);
        for (std::int64_t row = 0; row < rows; ++row) {
            const bool in_range =
                !shape.causal || rows == 1 || key <= row + shape.kv_len - shape.q_len;
            if (in_range && mask->get((first + row) * shape.kv_len + key) != 0.0) return true;
        }
    }
    return false;
}

void AttentionProblem::spoil_unseen(Random& random) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
        for (std::int64_t i = 0; i < shape.kv_len * shape.kv_heads; ++i) {
            if (is_seen(batch, i % shape.kv_heads, i / shape.kv_heads)) continue;
            const std::int64_t row = (batch * shape.kv_len * shape.kv_heads + i) * shape.head_dim;
            for (std::int64_t d = row; d < row + shape.head_dim; ++d) {
                k.set(d, random.chance(0.5) ? infinity : std::nan(""));
                v.set(d, random.chance(0.5) ? -infinity : std::nan(""));
            }
        }
    }
}

reference::Attention AttentionProblem::reference_call() {
    reference::Attention call;
    call.q = q.view();
    call.k = k.view();
    call.v = v.view();
    call.out = out.view();
    if (mask) call.mask = mask->view();
    call.lse = lse.view();
    call.causal = shape.causal;
    call.scale = shape.scale;
    return call;
}

AttentionShape random_attention_shape(Random& random, const AttentionLimits& limits) {
    AttentionShape shape;
    shape.batch = random.integer(1, limits.batch);
    // Short queries are as common as long ones.
    shape.q_len = random.chance(0.3) ? random.integer(1, 4) : random.integer(1, limits.q_len);
    shape.kv_len = random.integer(1, limits.kv_len);
    shape.kv_heads = random.integer(1, limits.kv_heads);
    shape.q_heads = shape.kv_heads * random.integer(1, limits.group);
    shape.head_dim = random.pick<std::int64_t>(limits.head_dims);
    shape.dtype = random.pick<DType>(limits.dtypes);
    if (limits.masks && random.chance(0.5)) {
        shape.mask = static_cast<MaskKind>(random.integer(1, 5));
    }
    shape.causal = random.chance(0.5);
    if (random.chance(0.3)) shape.scale = random.uniform(0.05, 0.5);
    return shape;
}

Layout random_layout(Random& random) {
    Layout layout;
    if (random.chance(0.5)) layout.order = kBhld.order;
    // The padding of head_dim keeps rows of 16-bit formats aligned to 16 bytes.
    if (random.chance(0.5)) {
        layout.padding = {random.integer(0, 1), random.integer(0, 3), random.integer(0, 2),
                          8 * random.integer(0, 2)};
    }
    return layout;
}

}  // namespace jitney::tests
