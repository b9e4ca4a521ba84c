#include "operations/fp8_linear/column_sums.hpp"

#include <algorithm>

#include "kernel_sources/fp8/column_sums_params.h"

namespace jitney::policy {
namespace {

// Fewer rows are not worth a block of their own.
constexpr std::int64_t kRowsASplit = 8 * kColumnSumsDown;
constexpr int kBlocksAMultiprocessor = 2;

}  // namespace

ColumnSumsChoice choose_column_sums(const ColumnSumsProblem& problem, const DeviceFacts& facts) {
    ColumnSumsChoice choice;
    choice.spec = spec_of(KernelId::column_sums, facts.arch,
                          {{"format", problem.format}, {"out", problem.out}});
    choice.column_blocks = (problem.cols - 1) / kColumnSumsCols + 1;
    const std::int64_t wanted =
        std::max(std::int64_t{1},
                 std::int64_t{facts.sm_count} * kBlocksAMultiprocessor / choice.column_blocks);
    const std::int64_t splits =
        std::clamp((problem.rows + kRowsASplit - 1) / kRowsASplit, std::int64_t{1}, wanted);
    choice.rows_a_split = (problem.rows + splits - 1) / splits;
    choice.splits = static_cast<int>(splits);
    if (splits > 1) {
        choice.part_bytes =
            static_cast<std::size_t>(splits) * static_cast<std::size_t>(problem.cols) * 4;
        choice.counter_bytes = static_cast<std::size_t>(choice.column_blocks) * 4;
    }
    choice.geometry.grid[0] = static_cast<unsigned>(choice.column_blocks * choice.splits);
    choice.geometry.block[0] = kColumnSumsThreads;
    choice.geometry.programmatic = has_programmatic_launches(facts);
    choice.geometry.shared_bytes = kColumnSumsSharedBytes;
    return choice;
}

}  // namespace jitney::policy
