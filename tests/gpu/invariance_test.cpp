// batch_invariant on the GPU: the bits of a request's result do not depend on its company.
#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "jitney/backend.hpp"
#include "tests/gpu/serving_device.hpp"
#include "tests/support/same_request.hpp"

namespace jitney::tests {
namespace {

std::vector<double> rows_after(const Company& company) {
    const ServingDevice device(company.problem);
    AttentionArgs args = device.args(company.problem.shape);
    args.batch_invariant = true;
    args.max_kv_len = company.max_kv_len;
    attention(args);
    synchronize();
    return rows_of(company.problem, company.place, device.download("out"), device.download("lse"));
}

void check_request(const ServingShape& shape, Random& random) {
    const ServingProblem alone(shape, random);
    std::optional<std::vector<double>> first;
    std::string ran;
    for (const Company& company : companies_of(alone, 100, 1500, random)) {
        INFO(company.problem.shape.text(), ", request ", company.place);
        const std::vector<double> rows = rows_after(company);
        if (!first) {
            first = rows;
            ran = last_run();
        }
        CHECK(last_run() == ran);
        CHECK_MESSAGE(is_same(*first, rows), ran, " depends on the company of a request");
    }
}

}  // namespace

TEST_CASE("the same request has the same result in any batch, place and pages") {
    Random random = Random::fresh();
    INFO(random.text());
    const std::vector<std::int64_t> lengths =
        is_quick() ? std::vector<std::int64_t>{6000} : std::vector<std::int64_t>{0, 300, 6000};
    for (const KeyForm keys : {KeyForm::dense, KeyForm::padded, KeyForm::ragged,
                               KeyForm::token_table, KeyForm::block_table, KeyForm::page_list}) {
        for (const bool packed : {false, true}) {
            for (const std::int64_t kv_len : lengths) {
                ServingShape shape;
                shape.head_dim = random.chance(0.5) ? 128 : 64;
                shape.kv_heads = random.integer(1, 4);
                shape.group = random.integer(1, 8);
                shape.packed = packed;
                shape.keys = keys;
                const bool pages = keys == KeyForm::block_table || keys == KeyForm::page_list;
                shape.page_size = pages ? 16 : 1;
                shape.q_lens = {packed ? random.integer(1, 100) : random.integer(1, 2)};
                shape.kv_lens = {kv_len};
                shape.causal = true;
                check_request(shape, random);
            }
        }
    }
}

}  // namespace jitney::tests
