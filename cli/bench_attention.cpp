#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>

#include "cli/attention_problem.hpp"
#include "cli/bench.hpp"
#include "cli/memory.hpp"

namespace jitney::cli {

namespace {

struct Options : BenchOptions {
    AttentionProblem problem;
};

// How many keys the queries of a request see together, masks aside.
double seen_pairs(const AttentionArgs& args, std::int64_t q_len, std::int64_t kv_len) {
    double pairs = 0;
    for (std::int64_t i = 0; i < q_len; ++i) {
        const std::int64_t place = i + kv_len - q_len;
        std::int64_t first = 0;
        std::int64_t last = kv_len - 1;
        if (args.causal) last = std::min(last, place);
        if (args.window_left >= 0) first = std::max(first, place - args.window_left);
        if (args.window_right >= 0) last = std::min(last, place + args.window_right);
        pairs += static_cast<double>(std::max<std::int64_t>(0, last - first + 1));
    }
    return pairs;
}

double seen_pairs(const AttentionArgs& args, const AttentionProblem& problem) {
    if (problem.equal_lengths()) {
        return static_cast<double>(problem.batch()) *
               seen_pairs(args, problem.q_len(0), problem.kv_len(0));
    }
    double pairs = 0;
    for (std::int64_t i = 0; i < problem.batch(); ++i)
        pairs += seen_pairs(args, problem.q_len(i), problem.kv_len(i));
    return pairs;
}

// Those that the call has.
std::vector<Tensor*> tensors_of(AttentionArgs& args) {
    std::vector<Tensor*> tensors = {&args.q, &args.k, &args.v, &args.out};
    for (std::optional<Tensor>* tensor :
         {&args.mask, &args.qo_indptr, &args.kv_indptr, &args.kv_lens, &args.block_table,
          &args.alibi_slopes, &args.sinks, &args.new_k, &args.new_v}) {
        if (*tensor) tensors.push_back(&**tensor);
    }
    return tensors;
}

BenchWork work_of(const AttentionProblem& problem) {
    AttentionArgs args = problem.arguments({});
    const Shape& q = problem.q;
    BenchWork work;
    work.operation = "attention";
    work.flops = 4 * seen_pairs(args, problem) * static_cast<double>(q[q.size() - 2] * q.back());
    for (const Tensor* tensor : tensors_of(args))
        work.bytes += static_cast<double>(bytes_of(*tensor));
    work.tensor_cores = args.q.dtype != DType::fp32;
    return work;
}

// The values of an index tensor.
using Indices = std::vector<int>;

std::vector<std::byte> bytes_of_values(const Indices& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(int));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

template <class Length>
Indices lengths(const AttentionProblem& problem, Length length) {
    Indices values;
    for (std::int64_t i = 0; i < problem.batch(); ++i)
        values.push_back(static_cast<int>(length(i)));
    return values;
}

template <class Length>
Indices ends(const AttentionProblem& problem, Length length) {
    Indices values{0};
    for (std::int64_t i = 0; i < problem.batch(); ++i)
        values.push_back(values.back() + static_cast<int>(length(i)));
    return values;
}

// All pages of the pool, in random order.
Indices shuffled_pages(const Tensor& table) {
    Indices pages(static_cast<std::size_t>(table.elements()));
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), std::mt19937(1));
    return pages;
}

BenchCall call_of(const AttentionProblem& problem, Device device) {
    const auto args = std::make_shared<AttentionArgs>(problem.arguments(device));
    BenchCall call;
    call.tensors = tensors_of(*args);
    const auto set = [&call](const std::optional<Tensor>& tensor, const Indices& values) {
        call.contents.emplace(&*tensor, bytes_of_values(values));
    };
    const auto queries = [&problem](std::int64_t request) { return problem.q_len(request); };
    const auto keys = [&problem](std::int64_t request) { return problem.kv_len(request); };
    if (args->qo_indptr) set(args->qo_indptr, ends(problem, queries));
    if (args->kv_indptr) set(args->kv_indptr, ends(problem, keys));
    if (args->kv_lens) set(args->kv_lens, lengths(problem, keys));
    if (args->block_table) set(args->block_table, shuffled_pages(*args->block_table));
    call.run = [args] { attention(*args); };
    return call;
}

int bench_attention(const Options& options, bool json) {
    const AttentionProblem& problem = options.problem;
    return run_bench(
        options, work_of(problem), [&problem](Device device) { return call_of(problem, device); },
        json);
}

}  // namespace

void add_bench_attention(CLI::App& group, Request& request) {
    const auto options = std::make_shared<Options>();
    CLI::App& command =
        add_command(group, request, "attention", "Attention, of the shapes given",
                    [options](bool json) { return bench_attention(*options, json); });
    options->problem.add_to(command);
    options->add_to(command);
}

}  // namespace jitney::cli
