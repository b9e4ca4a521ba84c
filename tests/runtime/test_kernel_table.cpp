#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "runtime/kernel_table.hpp"
#include "tests/runtime/tiny.hpp"

using namespace jitney;
using runtime::Kernel;
using runtime::KernelTable;

namespace {

Kernel numbered(int number) {
    Kernel kernel;
    kernel.registers = number;
    return kernel;
}

}  // namespace

TEST_CASE("a kernel is found under its key and device alone, and keeps its address") {
    KernelTable table;
    CHECK(table.find(tests::tiny_key(90, 1), 0) == nullptr);
    const Kernel& kernel = table.insert(tests::tiny_key(90, 1), 0, numbered(7));
    CHECK(table.find(tests::tiny_key(90, 1), 0) == &kernel);
    CHECK(table.find(tests::tiny_key(90, 1), 1) == nullptr);
    CHECK(table.find(tests::tiny_key(90, 2), 0) == nullptr);
    SUBCASE("the first one stays") {
        CHECK(&table.insert(tests::tiny_key(90, 1), 0, numbered(8)) == &kernel);
        CHECK(table.size() == 1);
    }
    SUBCASE("through growth") {
        for (int i = 2; i < 5000; ++i)
            table.insert(tests::tiny_key(90, i), i % 8, numbered(i));
        CHECK(table.find(tests::tiny_key(90, 1), 0) == &kernel);
        for (int i = 2; i < 5000; ++i) {
            const Kernel* found = table.find(tests::tiny_key(90, i), i % 8);
            REQUIRE(found != nullptr);
            REQUIRE(found->registers == i);
        }
    }
}

TEST_CASE("readers find what was there while writers add") {
    KernelTable table;
    constexpr int kCount = 4000;
    std::atomic<int> inserted{0};
    std::atomic<int> wrong{0};
    std::vector<std::thread> readers;
    for (int reader = 0; reader < 3; ++reader) {
        readers.emplace_back([&] {
            for (int done = 0; done < kCount; done = inserted.load()) {
                for (int i = 0; i < done; i += 7) {
                    const Kernel* found = table.find(tests::tiny_key(80, i), 0);
                    if (found == nullptr || found->registers != i) ++wrong;
                }
            }
        });
    }
    for (int i = 0; i < kCount; ++i) {
        table.insert(tests::tiny_key(80, i), 0, numbered(i));
        inserted.store(i + 1);
    }
    for (std::thread& reader : readers)
        reader.join();
    CHECK(wrong == 0);
}
