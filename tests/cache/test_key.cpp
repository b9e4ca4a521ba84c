#include <doctest/doctest.h>

#include "cache/store.hpp"

using namespace jitney::cache;

TEST_CASE("smoke") {
    char root[] = "/tmp/jitney-cache-XXXXXX";
    REQUIRE(mkdtemp(root));
    Options options;
    options.private_root = std::string(root) + "/a/b";
    options.warn = [](std::string_view text) { MESSAGE(std::string(text)); };
    Store store(options);
    const Key key = make_key("k<a=1>@sm_90a", std::vector<Source>{{"a.h", "text"}},
                             std::vector<std::string>{"-x"});
    int runs = 0;
    const auto compute = [&] {
        ++runs;
        return Entry{{}, "nvrtc13.0", "k", PayloadKind::cubin, "bytes"};
    };
    CHECK(store.get_or_compute(key, "nvrtc13.0", compute).origin == Origin::computed);
    CHECK(store.get_or_compute(key, "nvrtc13.0", compute).origin == Origin::private_layer);
    CHECK(runs == 1);
    CHECK(store.list().size() == 1);
}
