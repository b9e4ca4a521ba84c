#include "cli/bench_problem.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <random>

#include "cli/memory.hpp"

namespace jitney::cli {

namespace {

// How many rows each request has.
using Lengths = std::vector<std::int64_t>;

// Each as many as `length` is, or, where only `total` is known, all of them shared evenly.
Lengths lengths_of(const ProblemCall& call, std::string_view length, std::string_view total) {
    const std::int64_t requests = call.size("batch").value_or(0);
    if (const auto each = call.size(length); each && !call.size(total)) {
        return Lengths(static_cast<std::size_t>(requests), *each);
    }
    const std::int64_t all = call.size(total).value_or(0);
    Lengths lengths;
    for (std::int64_t i = 0; i < requests; ++i)
        lengths.push_back(all / requests + (i < all % requests ? 1 : 0));
    return lengths;
}

Lengths queries_of(const FieldProblem& problem, const ProblemCall& call) {
    const std::vector<int>& ends = problem.ends();
    if (ends.empty()) return lengths_of(call, "q_len", "total_q");
    Lengths lengths;
    for (std::size_t i = 1; i < ends.size(); ++i)
        lengths.push_back(ends[i] - ends[i - 1]);
    return lengths;
}

Lengths keys_of(const FieldProblem& problem, const ProblemCall& call) {
    if (call.find("kv_indptr") != nullptr && !call.holds("kv")) return queries_of(problem, call);
    return lengths_of(call, "kv_len", call.find("new_indptr") ? "total_new" : "total_kv");
}

std::int64_t option_of_problem(const FieldProblem& problem, const ProblemCall& call,
                               std::string_view name) {
    for (const OperationField& field : call.operation().fields) {
        if (field.name == name) return problem.options().integer(field).value_or(0);
    }
    return 0;
}

struct Seen {
    bool causal;
    std::int64_t left;
    std::int64_t right;

    // How many keys the queries of a request see together, masks aside.
    double pairs(std::int64_t q_len, std::int64_t kv_len) const {
        double pairs = 0;
        for (std::int64_t i = 0; i < q_len; ++i) {
            const std::int64_t place = i + kv_len - q_len;
            std::int64_t first = 0;
            std::int64_t last = kv_len - 1;
            if (causal) last = std::min(last, place);
            if (left >= 0) first = std::max(first, place - left);
            if (right >= 0) last = std::min(last, place + right);
            pairs += static_cast<double>(std::max<std::int64_t>(0, last - first + 1));
        }
        return pairs;
    }
};

double seen_pairs(const FieldProblem& problem, const ProblemCall& call) {
    const Seen seen = {call.holds("causal"), option_of_problem(problem, call, "window_left"),
                       option_of_problem(problem, call, "window_right")};
    std::map<std::pair<std::int64_t, std::int64_t>, double> requests;  // by queries and keys
    const Lengths queries = queries_of(problem, call);
    const Lengths keys = keys_of(problem, call);
    for (std::size_t i = 0; i < queries.size(); ++i)
        requests[{queries[i], keys[i]}] += 1;
    double pairs = 0;
    for (const auto& [lengths, count] : requests)
        pairs += count * seen.pairs(lengths.first, lengths.second);
    return pairs;
}

double product_of(const ProblemCall& call, std::initializer_list<std::string_view> sizes) {
    double product = 1;
    for (const std::string_view size : sizes)
        product *= static_cast<double>(call.size(size).value_or(0));
    return product;
}

using Indices = std::vector<int>;

std::vector<std::byte> bytes_of_values(const Indices& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(int));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

Indices ends_of(const Lengths& lengths) {
    Indices ends{0};
    for (const std::int64_t length : lengths)
        ends.push_back(ends.back() + static_cast<int>(length));
    return ends;
}

// All pages of the pool, in random order.
Indices shuffled_pages(const Tensor& table) {
    Indices pages(static_cast<std::size_t>(table.elements()));
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), std::mt19937(1));
    return pages;
}

// The values of a tensor where they matter; nothing for others.
std::vector<std::byte> content_of(const FieldProblem& problem, const ProblemCall& call,
                                  const CallTensor& tensor) {
    const std::string& name = tensor.field->name;
    if (name == "qo_indptr") return bytes_of_values(ends_of(queries_of(problem, call)));
    if (name == "kv_indptr") return bytes_of_values(ends_of(keys_of(problem, call)));
    if (name == "new_indptr") {
        return bytes_of_values(ends_of(lengths_of(call, "new_len", "total_new")));
    }
    if (name == "kv_lens") {
        const Lengths keys = keys_of(problem, call);
        return bytes_of_values(Indices(keys.begin(), keys.end()));
    }
    if (name == "block_table") return bytes_of_values(shuffled_pages(tensor.host));
    if (name == "state") return std::vector<std::byte>(bytes_of(tensor.host));
    return {};
}

}  // namespace

BenchWork work_of(const FieldProblem& problem) {
    const auto call = problem.call({});
    BenchWork work;
    work.operation = command_of(call->operation());
    for (const CallTensor& tensor : call->tensors())
        work.bytes += static_cast<double>(bytes_of(tensor.host));
    const Tensor* const q = call->find("q");
    if (work.operation == "attention") {
        work.flops = 4 * seen_pairs(problem, *call) * product_of(*call, {"q_heads", "head_dim"});
        work.tensor_cores = q->dtype != DType::fp32;
    } else if (work.operation == "fp8-gemm") {
        work.flops = 2 * product_of(*call, {"m", "n", "k"});
        work.tensor_cores = true;
    } else if (work.operation.starts_with("fp8-linear")) {
        const double products = work.operation == "fp8-linear" ? 1 : 2;
        work.flops = 2 * products * product_of(*call, {"rows", "in_features", "out_features"});
        work.tensor_cores = true;
    }
    return work;
}

BenchCall call_of(const FieldProblem& problem, Device device) {
    struct Made {
        std::shared_ptr<const ProblemCall> call;
        std::vector<Tensor> tensors;
        std::unique_ptr<CCall> args;  // once the tensors have memory
    };
    const auto made = std::make_shared<Made>();
    made->call = problem.call(device);
    for (const CallTensor& tensor : made->call->tensors())
        made->tensors.push_back(tensor.host);
    BenchCall bench;
    for (std::size_t i = 0; i < made->tensors.size(); ++i) {
        bench.tensors.push_back(&made->tensors[i]);
        auto content = content_of(problem, *made->call, made->call->tensors()[i]);
        if (!content.empty()) bench.contents.emplace(&made->tensors[i], std::move(content));
    }
    bench.run = [made] {
        if (made->args == nullptr) made->args = made->call->on(made->tensors);
        run_operation(made->call->operation().name, made->args->args());
    };
    return bench;
}

}  // namespace jitney::cli
