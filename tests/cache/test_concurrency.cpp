// Many threads and processes on one cache: all succeed, and where locks work each key is compiled
// once.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "cache/lock.hpp"
#include "tests/cache/faulty_files.hpp"

using namespace jitney::cache;
using namespace jitney::cache::testing;

namespace {

// Counts what is computed, in any process: a byte at the end of a file each time.
class Counter {
  public:
    explicit Counter(const TempDir& temp) : path_(temp / "computed") {}
    void add() const {
        const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (::write(file, "x", 1) != 1) std::abort();
        ::close(file);
    }
    std::size_t count() const { return read_file(path_).size(); }

  private:
    std::string path_;
};

// Holds children back until all of them are there.
class Gate {
  public:
    Gate() { REQUIRE(::pipe2(ends_, O_CLOEXEC) == 0); }
    ~Gate() {
        ::close(ends_[0]);
        if (ends_[1] >= 0) ::close(ends_[1]);
    }
    void wait() {  // in a child
        ::close(ends_[1]);
        ends_[1] = -1;
        char byte = 0;
        [[maybe_unused]] const ssize_t ignored = ::read(ends_[0], &byte, 1);
    }
    void open() {
        ::close(ends_[1]);
        ends_[1] = -1;
    }

  private:
    int ends_[2] = {-1, -1};
};

bool get_slowly(Store& store, const Counter& counter, const std::string& variant,
                int milliseconds = 60) {
    const Outcome outcome = store.get_or_compute(sample_key(variant), kCompiler, [&] {
        counter.add();
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        return sample_entry(variant);
    });
    return outcome.entry->payload == payload_for(variant);
}

// How many of `count` children did not return 0.
int run_children(int count, const std::function<int(int)>& body) {
    Gate gate;
    std::vector<int> children;
    for (int i = 0; i < count; ++i) {
        children.push_back(start_child([&, i] {
            gate.wait();
            return body(i);
        }));
    }
    gate.open();
    int failed = 0;
    for (const int child : children)
        failed += wait_child(child) != 0;
    return failed;
}

}  // namespace

TEST_CASE("16 processes on one cold key compile it once") {
    TempDir temp;
    const Counter counter(temp);
    CHECK(run_children(16, [&](int) {
              Store store(options_for(temp / "cache"));
              return get_slowly(store, counter, "128") ? 0 : 1;
          }) == 0);
    CHECK(counter.count() == 1);
    CHECK(names_under(temp / "cache").size() == 1);
}

TEST_CASE("16 processes without locks compile it at most 16 times") {
    for (const bool unsupported : {false, true}) {
        TempDir temp;
        const Counter counter(temp);
        CHECK(run_children(16, [&](int) {
                  FaultyFiles files;
                  files.only = "flock";
                  files.error = EOPNOTSUPP;
                  Options options = options_for(temp / "cache");
                  options.file_system = &files;
                  if (unsupported) {
                      files.mode = FaultyFiles::Mode::from_then_on;
                  } else {
                      options.lock_timeout = std::chrono::milliseconds(0);
                  }
                  Store store(options);
                  return get_slowly(store, counter, "128") ? 0 : 1;
              }) == 0);
        CHECK(counter.count() >= 1);
        CHECK(counter.count() <= 16);
        Store store(options_for(temp / "cache"));
        CHECK_FALSE(get(store).computed);
    }
}

TEST_CASE("8 processes on 25 keys compile each once") {
    TempDir temp;
    const Counter counter(temp);
    CHECK(run_children(8, [&](int process) {
              Store store(options_for(temp / "cache"));
              for (int i = 0; i < 25; ++i) {
                  const int key = (i + process * 3) % 25;
                  if (!get_slowly(store, counter, std::to_string(key), 5)) return 1;
              }
              return 0;
          }) == 0);
    CHECK(counter.count() == 25);
    Store store(options_for(temp / "cache"));
    CHECK(store.verify().checked == 25);
    CHECK(store.verify().bad.empty());
}

TEST_CASE("threads in processes compile each key once") {
    TempDir temp;
    const Counter counter(temp);
    CHECK(run_children(4, [&](int) {
              Store store(options_for(temp / "cache"));
              std::atomic<int> failed{0};
              std::vector<std::thread> threads;
              for (int thread = 0; thread < 4; ++thread) {
                  threads.emplace_back([&, thread] {
                      for (int i = 0; i < 6; ++i) {
                          const int key = (i + thread) % 6;
                          if (!get_slowly(store, counter, std::to_string(key), 5)) ++failed;
                      }
                  });
              }
              for (std::thread& thread : threads)
                  thread.join();
              return failed.load();
          }) == 0);
    CHECK(counter.count() == 6);
}

TEST_CASE("threads share one computation and its entry") {
    for (const bool on_disk : {true, false}) {
        TempDir temp;
        const Counter counter(temp);
        Store store(options_for(on_disk ? temp / "cache" : std::string()));
        std::atomic<int> shared{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 16; ++i) {
            threads.emplace_back([&] {
                const Outcome outcome = store.get_or_compute(sample_key(), kCompiler, [&] {
                    counter.add();
                    std::this_thread::sleep_for(std::chrono::milliseconds(200));
                    return sample_entry();
                });
                if (outcome.origin != Origin::computed) ++shared;
            });
        }
        for (std::thread& thread : threads)
            thread.join();
        if (on_disk) {
            CHECK(counter.count() == 1);
            CHECK(shared == 15);
        } else {
            CHECK(counter.count() >= 1);  // a thread that came after the landing computes again
        }
    }
}

TEST_CASE("a failure is nobody's result: the next who waits computes") {
    TempDir temp;
    Store store(options_for(temp / "cache"));
    std::atomic<int> attempts{0};
    std::atomic<int> thrown{0};
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] {
            try {
                const Outcome outcome = store.get_or_compute(sample_key(), kCompiler, [&] {
                    std::this_thread::sleep_for(std::chrono::milliseconds(20));
                    if (attempts.fetch_add(1) < 3) throw std::runtime_error("no compiler today");
                    return sample_entry();
                });
                right += outcome.entry->payload == payload_for("128");
            } catch (const std::runtime_error&) {
                ++thrown;
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    CHECK(attempts == 4);
    CHECK(thrown == 3);
    CHECK(right == 5);
    CHECK(names_under(temp / "cache").size() == 1);
}

TEST_CASE("a holder that never ends is waited for only so long") {
    TempDir temp;
    Gate held;
    int ready[2];
    REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
    const int holder = start_child([&] {
        Store store(options_for(temp / "cache"));
        store.get_or_compute(sample_key(), kCompiler, [&] {
            if (::write(ready[1], "x", 1) != 1) std::abort();
            held.wait();
            return sample_entry();
        });
        return 0;
    });
    char byte = 0;
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    Options options = options_for(temp / "cache");
    options.lock_timeout = std::chrono::milliseconds(100);
    Store store(options);
    const Got got = get(store);
    CHECK(got.right);
    CHECK(got.computed);
    held.open();
    CHECK(wait_child(holder) == 0);
    CHECK_FALSE(get(store).computed);
    ::close(ready[0]);
    ::close(ready[1]);
}

TEST_CASE("a reader sees one or the other while an entry is replaced, and never none") {
    TempDir temp;
    const std::string root = temp / "cache";
    Entry other = sample_entry();
    other.payload = payload_for("other", 5000);
    REQUIRE(Store(options_for(root)).put(sample_key(), sample_entry()));
    CHECK(run_children(4, [&](int process) {
              Store store(options_for(root));
              for (int i = 0; i < 300; ++i) {
                  if (process == 0) {
                      if (!store.put(sample_key(), i % 2 ? sample_entry() : other)) return 1;
                      continue;
                  }
                  const auto hit = store.find(sample_key(), kCompiler).next();
                  if (!hit) return 2;
                  if (hit->entry->payload != other.payload &&
                      hit->entry->payload != payload_for("128")) {
                      return 3;
                  }
              }
              return 0;
          }) == 0);
}

TEST_CASE("evictors, readers, writers and two prewarms together") {
    TempDir temp;
    const std::string root = temp / "cache";
    CHECK(run_children(6, [&](int process) {
              Options options = options_for(root);
              options.max_bytes = 8000;  // some of the 25 keys
              Store store(options);
              for (int i = 0; i < 100; ++i) {
                  const std::string variant = std::to_string((i * 7 + process) % 25);
                  if (process == 0) {
                      store.prune(static_cast<std::uint64_t>(i % 3) * 2000);
                  } else if (process == 1 && i % 10 == 0) {
                      store.clear();
                  } else if (!get(store, variant).right) {
                      return 1;
                  }
              }
              return 0;
          }) == 0);
    Store store(options_for(root));
    CHECK(store.verify().bad.empty());
    CHECK(names_under(root, ".").empty());
}

TEST_CASE("a child forked from a thread's computation finds its own way") {
    for (const bool on_disk : {true, false}) {
        TempDir temp;
        Options options = options_for(on_disk ? temp / "cache" : std::string());
        // On disk the child waits for its parent's lock. The flight that it sees in its copy of
        // the parent's memory has no thread, and is not waited for.
        options.lock_timeout = std::chrono::milliseconds(on_disk ? 300 : 3600000);
        Store store(options);
        std::atomic<bool> inside{false};
        std::atomic<bool> finish{false};
        const auto wait_for = [](const std::atomic<bool>& flag) {
            while (!flag)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
        };
        std::thread thread([&] {
            store.get_or_compute(sample_key(), kCompiler, [&] {
                inside = true;
                wait_for(finish);
                return sample_entry();
            });
        });
        wait_for(inside);
        CHECK(in_child([&] { return get(store).right && get(store, "64").right ? 0 : 1; }, 30) ==
              0);
        finish = true;
        thread.join();
        CHECK(get(store).computed == !on_disk);
        CHECK(get(store, "64").computed == !on_disk);
    }
}

TEST_CASE("whoever waited for a lock holds it alone, though its file was removed meanwhile") {
    class Watch : public QuickFiles {
      public:
        std::atomic<bool> waits{false};
        int flock(int file, int operation) override {
            const int result = QuickFiles::flock(file, operation);
            if (result != 0 && errno == EWOULDBLOCK) waits = true;
            return result;
        }
    };
    TempDir temp;
    Watch files;
    Warnings warnings(nullptr);
    Layer layer(files, temp / "cache", Role::writable, warnings);
    const Digest digest = sample_key().digest;
    constexpr auto kLong = std::chrono::hours(1);
    KeyLock first;
    REQUIRE(first.acquire(layer, digest, kLong));
    KeyLock second;
    bool acquired = false;
    std::thread waiter([&] { acquired = second.acquire(layer, digest, kLong); });
    while (!files.waits)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    first.release();
    waiter.join();
    CHECK(acquired);
    KeyLock third;
    CHECK_FALSE(third.acquire(layer, digest, std::chrono::milliseconds(0)));
    second.release();
    CHECK(third.acquire(layer, digest, std::chrono::milliseconds(0)));
}

TEST_CASE("every descriptor closes on exec") {
    TempDir temp;
    Options options = options_for(temp / "cache");
    const auto flags = [] {
        std::vector<int> open;
        for (const auto& item : std::filesystem::directory_iterator("/proc/self/fd")) {
            const int file = std::stoi(item.path().filename().string());
            const int flag = ::fcntl(file, F_GETFD);
            if (flag >= 0 && (flag & FD_CLOEXEC) == 0) open.push_back(file);
        }
        return open;
    };
    const std::vector<int> before = flags();
    const std::size_t count_before = open_descriptors();
    Store store(options);
    store.get_or_compute(sample_key(), kCompiler, [&] {
        CHECK(open_descriptors() > count_before);  // the root, and the lock
        CHECK(flags() == before);
        return sample_entry();
    });
    CHECK(flags() == before);
}
