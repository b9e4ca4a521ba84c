// Bad calls with requests, pages and options are refused with a sentence.
#include "jitney/attention.hpp"
#include "operations/attention/check_requests.hpp"
#include "operations/check.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/support/serving_problem.hpp"

namespace jitney::tests {
namespace {

using Bad = BadCall<AttentionArgs>;

ServingShape shape_of(KeyForm keys, bool packed) {
    ServingShape shape;
    shape.head_dim = 8;
    shape.kv_heads = 2;
    shape.group = 2;
    shape.packed = packed;
    shape.q_lens = packed ? std::vector<std::int64_t>{3, 1} : std::vector<std::int64_t>{2, 2};
    shape.kv_lens = {7, 5};
    shape.keys = keys;
    if (keys == KeyForm::block_table || keys == KeyForm::page_list) shape.page_size = 4;
    return shape;
}

void check_all(const ServingShape& shape, const std::vector<Bad>& all) {
    CAPTURE(shape.text());
    Random random(2);
    ServingProblem problem(shape, random);
    // Views of another problem, for what this one does not have.
    const AttentionArgs args = serving_call<AttentionArgs>(shape, problem.views());
    for (const Bad& bad : all)
        check_refused(bad, args, [](const AttentionArgs& a) { attention(a); });
    attention(args);  // all were made from a good one
}

Tensor other(DType dtype, std::initializer_list<std::int64_t> shape) {
    static std::array<std::int64_t, 4096> memory{};
    return Tensor::contiguous(memory.data(), dtype, shape, {DeviceType::cpu, 0});
}

}  // namespace

TEST_CASE("bad ragged calls") {
    static const std::vector<int> short_host = {0, 3};
    static const std::vector<int> falling = {0, 3, 2};
    static const std::vector<int> beyond = {0, 3, 9};
    static const std::vector<int> other_ends = {0, 2, 4};
    check_all(
        shape_of(KeyForm::ragged, true),
        {{"q of 4 dimensions", [](auto& a) { a.qo_indptr.reset(); }, {"q has 3 dimensions"}},
         {"no lengths of keys", [](auto& a) { a.kv_indptr.reset(); }, {"k has 3 dimensions"}},
         {"int64", [](auto& a) { a.qo_indptr->dtype = DType::int64; }, {"qo_indptr", "int32"}},
         {"another batch",
          [](auto& a) { a.kv_indptr->shape[0] = 2; },
          {"kv_indptr has 2 rows", "must have 3"}},
         {"an empty indptr", [](auto& a) { a.qo_indptr->shape[0] = 0; }, {"qo_indptr is empty"}},
         {"both lengths",
          [](auto& a) { a.kv_lens = other(DType::int32, {2}); },
          {"kv_lens and kv_indptr"}},
         {"null", [](auto& a) { a.qo_indptr->data = nullptr; }, {"qo_indptr", "null"}},
         {"strides", [](auto& a) { a.qo_indptr->strides[0] = 2; }, {"qo_indptr", "innermost"}},
         {"lse as of a batch",
          [](auto& a) {
              a.lse = other(DType::fp32, {2, 4, 3});
          },
          {"lse", "[total_q, q_heads]"}},
         {"lse of other rows",
          [](auto& a) {
              a.lse = other(DType::fp32, {5, 4});
          },
          {"lse", "[4, 4]"}},
         {"a short host copy",
          [](auto& a) { a.qo_indptr_host = short_host; },
          {"qo_indptr_host has 2 numbers", "3"}},
         {"a falling host copy",
          [](auto& a) { a.qo_indptr_host = falling; },
          {"qo_indptr_host[2] is 2", "between 3 and"}},
         {"a host copy beyond q",
          [](auto& a) { a.qo_indptr_host = beyond; },
          {"qo_indptr_host[2] is 9", "total_q"}},
         {"a host copy of other numbers",
          [](auto& a) { a.qo_indptr_host = other_ends; },
          {"qo_indptr_host[1] is 2", "qo_indptr[1] is 3"}},
         {"append",
          [](auto& a) {
              a.new_k = a.new_v = other(DType::bf16, {2, 1, 2, 8});
          },
          {"new_k", "ragged"}}});
}

TEST_CASE("bad paged calls") {
    check_all(
        shape_of(KeyForm::block_table, false),
        {{"no lengths", [](auto& a) { a.kv_lens.reset(); }, {"block_table", "neither"}},
         {"two lengths",
          [](auto& a) { a.kv_indptr = other(DType::int32, {3}); },
          {"block_table", "both"}},
         {"two forms",
          [](auto& a) {
              a.req_to_token = other(DType::int32, {2, 9});
              a.req_pool_indices = other(DType::int32, {2});
          },
          {"req_to_token and block_table", "one form"}},
         {"another batch", [](auto& a) { a.block_table->shape[0] = 3; }, {"block_table has 3"}},
         {"a table of one dimension",
          [](auto& a) { a.block_table->ndim = 1; },
          {"block_table has 1 dimensions"}},
         {"no page", [](auto& a) { a.k.shape[1] = a.v.shape[1] = 0; }, {"page size of 0"}},
         {"pools that differ", [](auto& a) { a.v.shape[1] = 3; }, {"v has the shape"}},
         {"half of another form",
          [](auto& a) { a.last_page_len = other(DType::int32, {2}); },
          {"kv_page_indptr, kv_page_indices and last_page_len"}},
         {"a hint below zero", [](auto& a) { a.max_kv_len = -1; }, {"max_kv_len is -1"}}});
    check_all(shape_of(KeyForm::token_table, false),
              {{"no rows", [](auto& a) { a.req_pool_indices.reset(); }, {"req_pool_indices"}},
               {"rows of none", [](auto& a) { a.req_to_token.reset(); }, {"req_to_token"}},
               {"pages",
                [](auto& a) {
                    a.k = a.v = other(DType::bf16, {4, 4, 2, 8});
                },
                {"pages of 4 keys", "block_table"}}});
    check_all(shape_of(KeyForm::page_list, false),
              {{"no fill", [](auto& a) { a.last_page_len.reset(); }, {"last_page_len"}},
               {"other lengths",
                [](auto& a) { a.kv_lens = other(DType::int32, {2}); },
                {"leave kv_lens out"}},
               {"a page that is too full",
                [](auto& a) {
                    a.last_page_len = other(DType::int32, {2});
                    static std::array<int, 2> fill = {5, 1};
                    a.last_page_len->data = fill.data();
                },
                {"last_page_len[0] is 5", "page size"}}});
}

// Kernels read a mask as far as lengths on the device say: what the host knows has to do.
TEST_CASE("a mask of one column for keys of several lengths") {
    Random random(2);
    for (const KeyForm form :
         {KeyForm::ragged, KeyForm::token_table, KeyForm::block_table, KeyForm::page_list}) {
        for (const int dims : {2, 3, 4}) {
            ServingShape shape = shape_of(form, form == KeyForm::ragged);
            shape.mask_dims = dims;
            CAPTURE(shape.text());
            ServingProblem problem(shape, random);
            HostTensor& mask = problem.at("mask");
            std::vector<std::int64_t> sizes = mask.shape();
            sizes.back() = 1;
            mask = HostTensor(DType::boolean, sizes);
            check_refused(Bad{"on the host", [](auto&) {}, {"the mask", "the keys,", "at least 7"}},
                          serving_call<AttentionArgs>(shape, problem.views()),
                          [](const AttentionArgs& a) { attention(a); });
            const auto args =
                serving_call<AttentionArgs>(shape, problem.views({DeviceType::cuda, 0}));
            const std::string most = std::to_string(checks::most_keys(args, kv_form(args)));
            const auto check = [](const AttentionArgs& a) { checks::check(a); };
            check_refused(
                Bad{"on a GPU",
                    [](auto&) {},
                    {"the last size of mask is 1", "longest request", most, "max_kv_len"}},
                args, check);
            check_refused(Bad{"on a GPU, of a known length",
                              [](auto& a) { a.max_kv_len = 9; },
                              {"the last size of mask is 1", "which may be 9"}},
                          args, check);
            AttentionArgs short_requests = args;
            short_requests.max_kv_len = 1;
            check(short_requests);
        }
    }
}

TEST_CASE("bad options") {
    ServingShape shape = shape_of(KeyForm::padded, false);
    shape.new_len = 2;
    check_all(
        shape,
        {{"a window below -1", [](auto& a) { a.window_left = -2; }, {"window_left is -2"}},
         {"a window below -1, right", [](auto& a) { a.window_right = -7; }, {"window_right is -7"}},
         {"softcap 0", [](auto& a) { a.softcap = 0.0f; }, {"softcap", "positive"}},
         {"slopes",
          [](auto& a) { a.alibi_slopes = other(DType::fp32, {3}); },
          {"alibi_slopes", "[4]"}},
         {"slopes of bf16",
          [](auto& a) { a.alibi_slopes = other(DType::bf16, {4}); },
          {"alibi_slopes", "fp32"}},
         {"sinks",
          [](auto& a) {
              a.sinks = other(DType::fp32, {4, 1});
          },
          {"sinks has 2"}},
         {"new_k alone", [](auto& a) { a.new_v.reset(); }, {"new_v"}},
         {"new_v of another length",
          [](auto& a) { a.new_v->shape[1] = 1; },
          {"new_v", "[2, 2, 2, 8]"}},
         {"new_k of another type",
          [](auto& a) { a.new_k->dtype = DType::fp16; },
          {"new_k", "fp16"}},
         {"append without queries",
          [](auto& a) { a.q.shape[1] = a.out.shape[1] = a.lse->shape[2] = 0; },
          {"new_k", "q_len is 0"}},
         {"append without query heads",
          [](auto& a) {
              a.q.shape[2] = a.out.shape[2] = a.lse->shape[1] = 0;
              a.alibi_slopes.reset();
              a.sinks.reset();
              a.mask.reset();
          },
          {"new_k", "q has no heads", "append_kv"}},
         {"append with more queries than a kernel that appends takes",
          [](auto& a) {
              a.q.shape[1] = a.out.shape[1] = a.lse->shape[2] = 65;
              a.q.strides[0] = a.out.strides[0] = 65 * a.q.strides[1];
              a.lse.reset();
          },
          {"new_k", "up to 64", "q_len is 65", "append_kv"}},
         {"more new keys than there is room",
          [](auto& a) { a.new_k->shape[1] = a.new_v->shape[1] = a.k.shape[1] + 1; },
          {"new_k has 11 keys", "room for 10"}},
         {"append to keys that requests share",
          [](auto& a) { a.k.strides[0] = 0; },
          {"k is written", "overlap"}}});
}

}  // namespace jitney::tests
