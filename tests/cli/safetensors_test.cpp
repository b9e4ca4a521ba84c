#include "cli/safetensors.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "jitney/error.hpp"
#include "tests/cli/raw_file.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/host_tensor.hpp"
#include "tests/support/temp_dir.hpp"

using namespace jitney;
using namespace jitney::tests;
using cli::TensorFile;

namespace {

constexpr std::array kAllTypes{DType::fp32,     DType::fp16,    DType::bf16,  DType::fp8_e4m3,
                               DType::fp8_e5m2, DType::boolean, DType::int32, DType::int64};

std::vector<std::int64_t> shape_of(const Tensor& tensor) {
    return {tensor.shape.begin(), tensor.shape.begin() + tensor.ndim};
}

std::size_t files_in(const TempDir& directory) {
    const std::filesystem::directory_iterator entries(directory.path());
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

}  // namespace

TEST_CASE("a file written by hand is read as it says") {
    const TempDir directory;
    const std::string path = directory.file("hand.safetensors");
    const std::string header =
        R"({"__metadata__":{"format":"pt"},)"
        R"("second":{"dtype":"I32","shape":[2,1],"data_offsets":[3,11]},)"
        R"( "first" : {"data_offsets":[0,3],"shape":[3],"dtype":"BOOL"},)"
        R"("none":{"dtype":"BF16","shape":[4,0],"data_offsets":[3,3]},)"
        R"("scalar\u00e9":{"dtype":"F32","shape":[],"data_offsets":[11,15]}}    )";
    const std::string data("\x01\x00\x01\x05\x00\x00\x00\xFE\xFF\xFF\xFF\x00\x00\x20\xC1", 15);
    write_bytes(path, safetensors_bytes(header, data));

    const TensorFile file = TensorFile::read(path);
    CHECK(file.tensors().size() == 4);
    CHECK(file.metadata() == cli::Metadata{{"format", "pt"}});
    CHECK(file.find("third") == nullptr);

    const Tensor* first = file.find("first");
    REQUIRE(first != nullptr);
    CHECK(first->dtype == DType::boolean);
    CHECK(first->device == Device{DeviceType::cpu, 0});
    CHECK(shape_of(*first) == std::vector<std::int64_t>{3});
    CHECK(std::memcmp(first->data, "\x01\x00\x01", 3) == 0);

    const Tensor* second = file.find("second");
    REQUIRE(second != nullptr);
    CHECK(shape_of(*second) == std::vector<std::int64_t>{2, 1});
    CHECK(static_cast<const std::int32_t*>(second->data)[0] == 5);
    CHECK(static_cast<const std::int32_t*>(second->data)[1] == -2);

    const Tensor* none = file.find("none");
    REQUIRE(none != nullptr);
    CHECK(none->elements() == 0);
    CHECK(shape_of(*none) == std::vector<std::int64_t>{4, 0});

    const Tensor* scalar = file.find("scalar\u00e9");
    REQUIRE(scalar != nullptr);
    CHECK(shape_of(*scalar) == std::vector<std::int64_t>{1});
    CHECK(*static_cast<const float*>(scalar->data) == -10.0F);

    // In memory all are aligned, though the offsets in the file are odd.
    for (const auto& [name, tensor] : file.tensors()) {
        CHECK(reinterpret_cast<std::uintptr_t>(tensor.data) % 64 == 0);
    }
}

TEST_CASE("a file without tensors is legal") {
    const TempDir directory;
    const std::string path = directory.file("empty.safetensors");
    write_bytes(path, safetensors_bytes("{}", ""));
    CHECK(TensorFile::read(path).tensors().empty());
    cli::write_safetensors(path, {});
    CHECK(TensorFile::read(path).tensors().empty());
}

TEST_CASE("what is written is read back, bit for bit, in every dtype and layout") {
    Random random = Random::fresh();
    INFO(random.text());
    const TempDir directory;
    const std::string path = directory.file("round.safetensors");
    const std::array<Layout, 3> layouts{Layout{}, Layout{{2, 0, 1}, {}}, Layout{{}, {1, 2, 3}}};
    for (const DType dtype : kAllTypes) {
        for (const Layout& layout : layouts) {
            HostTensor written(dtype, {3, 4, 5}, layout);
            written.fill([&](std::int64_t) { return static_cast<double>(random.integer(-1, 1)); });
            cli::write_safetensors(path, {{"x", written.view()}});
            const TensorFile file = TensorFile::read(path);
            const Tensor* read = file.find("x");
            REQUIRE(read != nullptr);
            CHECK(read->dtype == dtype);
            CHECK(shape_of(*read) == std::vector<std::int64_t>{3, 4, 5});
            HostTensor expected(dtype, {3, 4, 5});
            expected.fill([&](std::int64_t i) { return written.get(i); });
            CHECK(std::memcmp(read->data, expected.view().data,
                              static_cast<std::size_t>(60 * size_of(dtype))) == 0);
        }
    }
}

TEST_CASE(
    "tensors of dtypes that no operation takes are no fault of a file, until they are asked for") {
    const TempDir directory;
    const std::string path = directory.file("mixed.safetensors");
    const std::vector<std::pair<std::string, int>> others{
        {"F64", 128},    {"U64", 128},    {"C64", 128}, {"U32", 64},      {"I16", 32},
        {"U16", 32},     {"I8", 16},      {"U8", 16},   {"F8_E8M0", 16},  {"F8_E4M3FNUZ", 16},
        {"F6_E2M3", 12}, {"F6_E3M2", 12}, {"F4", 8},    {"SOME_NEW_1", 3}};
    std::string header = "{";
    std::string data;
    const auto add = [&](const std::string& name, const std::string& dtype, int bytes) {
        header += (data.empty() ? "\"" : ",\"") + name + R"(":{"dtype":")" + dtype +
                  R"(","shape":[2,8],"data_offsets":[)" + std::to_string(data.size()) + ",";
        data += std::string(static_cast<std::size_t>(bytes), static_cast<char>('0' + bytes % 10));
        header += std::to_string(data.size()) + "]}";
    };
    for (const auto& [dtype, bytes] : others)
        add("a " + dtype, dtype, bytes);
    add("x", "BF16", 32);
    add("z", "U8", 16);
    write_bytes(path, safetensors_bytes(header + "}", data));

    const TensorFile file = TensorFile::read(path);
    CHECK(file.tensors().size() == 1);
    const Tensor* const x = file.find("x");
    REQUIRE(x != nullptr);
    CHECK(std::string(static_cast<const char*>(x->data), 32) == std::string(32, '2'));
    CHECK(file.find("y") == nullptr);
    for (const auto& [dtype, bytes] : others) {
        try {
            file.find("a " + dtype);
            FAIL_CHECK("it was found");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::invalid_argument);
            const std::string text = error.what();
            CHECK_MESSAGE(text == path + " holds the tensor \"a " + dtype + "\" as " + dtype +
                                      ", which no operation takes: convert it to one of F32, F16, "
                                      "BF16, F8_E4M3, F8_E5M2, BOOL, I32 and I64",
                          text);
        }
    }
}

TEST_CASE("a tensor larger than the writer's buffer, with strides of its own") {
    Random random = Random::fresh();
    INFO(random.text());
    const TempDir directory;
    HostTensor written(DType::bf16, {300, 500}, {{1, 0}, {}});
    written.fill_normal(random);
    cli::write_safetensors(directory.file("x"), {{"x", written.view()}});
    const TensorFile file = TensorFile::read(directory.file("x"));
    HostTensor expected(DType::bf16, {300, 500});
    expected.fill([&](std::int64_t i) { return written.get(i); });
    CHECK(std::memcmp(file.find("x")->data, expected.view().data, 300 * 500 * 2) == 0);
}

TEST_CASE("strides of 0 are written out") {
    const TempDir directory;
    float value = 7.0F;
    const std::int64_t shape[] = {2, 3};
    Tensor view;
    view.data = &value;
    view.dtype = DType::fp32;
    view.device = {DeviceType::cpu, 0};
    view.ndim = 2;
    std::ranges::copy(shape, view.shape.begin());
    cli::write_safetensors(directory.file("x"), {{"x", view}});
    const TensorFile file = TensorFile::read(directory.file("x"));
    for (int i = 0; i < 6; ++i)
        CHECK(static_cast<const float*>(file.find("x")->data)[i] == 7.0F);
}

TEST_CASE("any true byte of a boolean is written as 1") {
    const TempDir directory;
    std::array<std::uint8_t, 3> bytes{0, 1, 0xFF};
    HostTensor mask(DType::boolean, {3});
    Tensor view = mask.view();
    view.data = bytes.data();
    cli::write_safetensors(directory.file("x"), {{"x", view}});
    const TensorFile file = TensorFile::read(directory.file("x"));
    CHECK(std::memcmp(file.find("x")->data, "\x00\x01\x01", 3) == 0);
}

TEST_CASE("the header is aligned, larger elements come first, and equal tensors give equal files") {
    const TempDir directory;
    HostTensor bytes(DType::fp8_e4m3, {3});
    HostTensor longs(DType::int64, {2});
    HostTensor floats(DType::fp32, {1});
    HostTensor others(DType::int32, {1});
    const cli::TensorsByName tensors{
        {"a", bytes.view()}, {"z", longs.view()}, {"c", floats.view()}, {"b", others.view()}};
    cli::write_safetensors(directory.file("one"), tensors, {{"k", "v"}, {"a", "b"}});
    cli::write_safetensors(directory.file("two"), tensors, {{"a", "b"}, {"k", "v"}});
    const std::string content = read_bytes(directory.file("one"));
    CHECK(content == read_bytes(directory.file("two")));
    const std::string expected = R"({"__metadata__":{"a":"b","k":"v"},)"
                                 R"("z":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
                                 R"("b":{"dtype":"I32","shape":[1],"data_offsets":[16,20]},)"
                                 R"("c":{"dtype":"F32","shape":[1],"data_offsets":[20,24]},)"
                                 R"("a":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[24,27]}})";
    const std::size_t padded = (expected.size() + 7) / 8 * 8;
    CHECK(content.substr(0, 8) == length_prefix(padded));
    CHECK(content.substr(8, expected.size()) == expected);
    CHECK(content.size() == 8 + padded + 27);
    CHECK(TensorFile::read(directory.file("one")).metadata() ==
          cli::Metadata{{"a", "b"}, {"k", "v"}});
}

TEST_CASE("names that JSON has to escape survive") {
    const TempDir directory;
    HostTensor tensor(DType::int32, {1});
    const std::string name = std::string("a\"b\\c\n\0d", 8) + "\u20ac";
    cli::write_safetensors(directory.file("x"), {{name, tensor.view()}});
    CHECK(TensorFile::read(directory.file("x")).find(name) != nullptr);
}

TEST_CASE("a file that exists is replaced as a whole, and a failure leaves it as it was") {
    const TempDir directory;
    const std::string path = directory.file("out.safetensors");
    HostTensor tensor(DType::fp32, {4});
    write_bytes(path, "old");
    Tensor broken = tensor.view();
    broken.device = {DeviceType::cuda, 0};
    CHECK_THROWS_AS(cli::write_safetensors(path, {{"x", broken}}), Error);
    CHECK(read_bytes(path) == "old");
    cli::write_safetensors(path, {{"x", tensor.view()}});
    CHECK(TensorFile::read(path).tensors().size() == 1);
    CHECK(files_in(directory) == 1);
}

TEST_CASE("a symbolic link stays, and its target is replaced") {
    const TempDir directory;
    const std::string target = directory.file("target");
    const std::string link = directory.file("link");
    write_bytes(target, "old");
    std::filesystem::create_symlink(target, link);
    HostTensor tensor(DType::fp32, {4});
    cli::write_safetensors(link, {{"x", tensor.view()}});
    CHECK(std::filesystem::is_symlink(link));
    CHECK(TensorFile::read(target).tensors().size() == 1);
    CHECK(files_in(directory) == 2);
}

TEST_CASE("what can't be written is refused, and nothing is left behind") {
    const TempDir directory;
    HostTensor tensor(DType::fp32, {4});
    const auto code_of = [&](const std::string& path, const cli::TensorsByName& tensors,
                             const cli::Metadata& metadata = {}) {
        try {
            cli::write_safetensors(path, tensors, metadata);
        } catch (const Error& error) {
            return static_cast<int>(error.code());
        }
        return 0;
    };
    constexpr int kInvalid = static_cast<int>(ErrorCode::invalid_argument);
    constexpr int kIo = static_cast<int>(ErrorCode::io);
    const std::string path = directory.file("x");
    CHECK(code_of(path, {{"__metadata__", tensor.view()}}) == kInvalid);
    CHECK(code_of(path, {{"\xFF", tensor.view()}}) == kInvalid);
    CHECK(code_of(path, {{"x", tensor.view()}}, {{"key", "\xC3"}}) == kInvalid);
    Tensor rankless = tensor.view();
    rankless.ndim = 0;
    CHECK(code_of(path, {{"x", rankless}}) == kInvalid);
    CHECK(code_of(directory.file("no/such/directory"), {{"x", tensor.view()}}) == kIo);
    CHECK(code_of(directory.path().string(), {{"x", tensor.view()}}) == kIo);
    CHECK(files_in(directory) == 0);
}
