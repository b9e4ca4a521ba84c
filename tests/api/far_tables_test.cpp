// Tables whose rows lie as far apart as they may: the kernels take the distance as an int, of
// elements, and multiply it in 64 bits.
#include <sys/mman.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "jitney/attention.hpp"
#include "operations/attention/reference.hpp"
#include "tests/api/bad_call.hpp"
#include "tests/api/fake_gpu.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/serving_problem.hpp"

namespace jitney::tests {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kRequests = 3;
constexpr std::int64_t kMostRows = 5;
constexpr std::int64_t kPages = 4;

// Rows of a table in address space of which only they have memory.
class FarTable {
  public:
    FarTable() {
        void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        REQUIRE(mapped != MAP_FAILED);
        first_ = static_cast<std::int32_t*>(mapped);
    }
    ~FarTable() { munmap(first_, kBytes); }
    FarTable(const FarTable&) = delete;
    FarTable& operator=(const FarTable&) = delete;

    // The numbers of `table`, its rows `stride` elements apart.
    Tensor copy_of(HostTensor& table, std::int64_t stride) {
        const std::int64_t rows = table.shape()[0];
        const std::int64_t columns = table.shape()[1];
        REQUIRE(rows <= kMostRows);
        std::int32_t* const begin = stride < 0 ? first_ - stride * (rows - 1) : first_;
        for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t i = 0; i < columns; ++i)
                begin[row * stride + i] = static_cast<std::int32_t>(table.at({row, i}));
        }
        return Tensor::strided(begin, DType::int32, {rows, columns}, {stride, 1},
                               {DeviceType::cuda, 0});
    }

  private:
    static constexpr std::size_t kBytes =
        static_cast<std::size_t>(4 * (kMostRows * (kMost + 1) + 64));
    std::int32_t* first_;
};

ServingShape shape_of_tables(KeyForm keys) {
    ServingShape shape;
    shape.head_dim = 16;
    shape.q_lens.assign(kRequests, 1);
    shape.kv_lens = {13, 16, 9};
    shape.keys = keys;
    shape.page_size = keys == KeyForm::block_table ? 4 : 1;
    shape.room = kPages * shape.page_size;
    return shape;
}

}  // namespace

TEST_CASE("scenario: far tables" * doctest::skip()) {
    const fake::Cuda& fake = start_software_gpu();
    Random random = Random::fresh();
    INFO(random.text());
    FarTable far;
    for (const KeyForm keys : {KeyForm::block_table, KeyForm::token_table}) {
        ServingShape shape = shape_of_tables(keys);
        if (keys == KeyForm::token_table) shape.room = 16;
        ServingProblem problem(shape, random);
        const char* const name = keys == KeyForm::block_table ? "block_table" : "req_to_token";
        AttentionArgs args =
            serving_call<AttentionArgs>(shape, problem.views({DeviceType::cuda, 0}));
        std::optional<Tensor>& table =
            keys == KeyForm::block_table ? args.block_table : args.req_to_token;
        for (const std::int64_t stride : {kMost, kMost - 1, -kMost}) {
            CAPTURE(stride);
            table = far.copy_of(problem.at(name), stride);
            ServingProblem expected = problem;
            reference::Attention call = serving_call<reference::Attention>(shape, expected.views());
            std::optional<Tensor>& its =
                keys == KeyForm::block_table ? call.block_table : call.req_to_token;
            its = table;
            its->device = kHost;
            reference::attention(call);
            attention(args);
            JITNEY_CHECK_CLOSE(problem.at("out"), expected.at("out"), (Tolerance{1e-5, 8e-3}));
        }
        const int launches = fake.launches;
        for (const std::int64_t stride : {kMost + 1, -kMost - 1, 2 * kMost + 3}) {
            table->strides[0] = stride;
            try {
                attention(args);
                FAIL_CHECK("it was accepted");
            } catch (const Error& error) {
                const std::string text = error.what();
                check_sentence(text);
                CHECK_MESSAGE(text.find(std::to_string(stride)) != std::string::npos, text);
                CHECK_MESSAGE(text.find(name) != std::string::npos, text);
            }
        }
        CHECK(fake.launches == launches);
    }
}

TEST_CASE("the rows of a table may lie 2^31 - 1 elements apart, and not further") {
    const TemporaryDirectory cache;
    REQUIRE_PASSED(run("scenario: far tables", fake_gpu(cache)));
}

}  // namespace jitney::tests
