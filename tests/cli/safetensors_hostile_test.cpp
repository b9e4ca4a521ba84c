// Files that are damaged or made to do harm: each is refused, with the reason.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdint>
#include <initializer_list>
#include <string>

#include "cli/safetensors.hpp"
#include "jitney/error.hpp"
#include "tests/cli/raw_file.hpp"
#include "tests/support/random.hpp"
#include "tests/support/temp_dir.hpp"

using namespace jitney;
using namespace jitney::tests;
using cli::TensorFile;

namespace {

// A JSON object of these members.
std::string object_of(std::initializer_list<std::string> members) {
    std::string text = "{";
    for (const std::string& member : members) {
        if (text.size() > 1) text += ',';
        text += member;
    }
    text += '}';
    return text;
}

class Hostile {
  public:
    // Checks that the content is refused as invalid, for a reason that contains `part`.
    void refuse(const std::string& content, const std::string& part) const {
        write_bytes(path_, content);
        try {
            TensorFile::read(path_);
            FAIL_CHECK("accepted, though ", part);
        } catch (const Error& error) {
            const std::string message = error.what();
            CHECK(error.code() == ErrorCode::invalid_argument);
            CHECK_MESSAGE(message.find(part) != std::string::npos, message);
            CHECK(message.find(path_) == 0);
            CHECK(message.find('\n') == std::string::npos);
            CHECK(message.size() < path_.size() + 400);
        }
    }
    void refuse_header(const std::string& header, const std::string& part,
                       const std::string& data = "") const {
        refuse(safetensors_bytes(header, data), part);
    }
    // The fields of one tensor, with 8 bytes of data.
    void refuse_fields(const std::string& fields, const std::string& part) const {
        refuse_header(object_of({"\"x\":" + object_of({fields})}), part, std::string(8, '\0'));
    }

  private:
    TempDir directory_;
    std::string path_ = directory_.file("hostile.safetensors");
};

std::string tensor_of(const std::string& name, int begin, int end) {
    return "\"" + name + R"(":{"dtype":"F8_E5M2","shape":[)" + std::to_string(end - begin) +
           R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}

}  // namespace

TEST_CASE("the length of the header is checked against the file and the cap") {
    const Hostile file;
    file.refuse("", "it has 0 bytes");
    file.refuse("\x02", "it has 1 bytes");
    file.refuse(std::string(7, '\0'), "it has 7 bytes");
    file.refuse(length_prefix(0), "does not begin with '{'");
    file.refuse(length_prefix(3) + "{}", "the file ends after 2 of them");
    file.refuse(length_prefix(100'000'000) + "{}", "the file ends after 2 of them");
    file.refuse(length_prefix(100'000'001) + "{}", "more than the 100000000");
    file.refuse(length_prefix(UINT64_MAX) + "{}", "more than the 100000000");
    file.refuse(length_prefix(std::uint64_t{1} << 63) + "{}", "more than the 100000000");
}

TEST_CASE("what was given in place of a safetensors file is named") {
    const Hostile file;
    file.refuse(
        "version https://git-lfs.github.com/spec/v1\n"
        "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
        "size 12345\n",
        " is a Git LFS pointer, which stands where the file itself was not fetched, and no "
        "safetensors file: fetch it with git lfs pull");
    file.refuse("/annex/objects/SHA256E-s12--0123.safetensors\n", "a git-annex pointer");
    for (const char* page : {"<!DOCTYPE html><html><body>404</body></html>", "<!doctype HTML>\n{",
                             "\n\n  <html lang=\"en\">\n", "\xEF\xBB\xBF<!DOCTYPE html>\n"}) {
        file.refuse(page, "an HTML page");
    }
    file.refuse("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "XML text");
    file.refuse(R"({"metadata": {}, "weight_map": {}})", "JSON text, such as the index of a model");
    file.refuse("{}", "JSON text");
    // A version that needs 0 makes a length of 64 MiB of it.
    file.refuse(std::string("PK\x03\x04\0\0\0\0\0\0\0\0", 12), "a zip archive, as .pt, .pth");
    file.refuse("PK\x03\x04\x14", "a zip archive");
    file.refuse("\x93NUMPY\x01", "a NumPy array");
    file.refuse("GGUF\x03", "a GGUF file");
    file.refuse("\x89HDF\r\n\x1a\n", "an HDF5 file");
    file.refuse("\x80\x02}q", "a Python pickle");
    file.refuse("\x1f\x8b\x08", "compressed by gzip, and no safetensors file: unpack it first");
    file.refuse("BZh91AY", "bzip2");
    file.refuse("\x28\xb5\x2f\xfd", "zstd");
    file.refuse(std::string(257, 'a') + "ustar", "a tar archive");
    // A length that begins like a text is one all the same.
    file.refuse_header(std::string('{', ' '), "does not begin with '{'");
}

TEST_CASE("a header that is no JSON, or more than JSON, is refused") {
    const Hostile file;
    file.refuse_header(" {}", "does not begin with '{'");
    file.refuse_header("\xEF\xBB\xBF{}", "does not begin with '{'");
    file.refuse_header("[]", "does not begin with '{'");
    file.refuse_header("{", "no valid JSON at its byte 2");
    file.refuse_header("{}}", "no valid JSON");
    file.refuse_header("{} x", "no valid JSON");
    file.refuse_header("{}{}", "no valid JSON");
    file.refuse_header("{,}", "no valid JSON");
    file.refuse_header("{\"x\"}", "no valid JSON");
    file.refuse_header("{/* */}", "no valid JSON");
    file.refuse_header(R"({"\xFF":1})", "no valid JSON");
    file.refuse_header("{\"\xFF\":1}", "no valid JSON");
    file.refuse_header(R"({"\ud800":1})", "no valid JSON");
    file.refuse_header(std::string("{}\0garbage", 10), "NUL");
    file.refuse_header(std::string("{\0}", 3), "NUL");
}

TEST_CASE("values of the wrong kind are refused") {
    const Hostile file;
    file.refuse_header(R"({"x":1})", "a number is not allowed as the value of \"x\"");
    file.refuse_header(R"({"x":null})", "null is not allowed");
    file.refuse_header(R"({"x":true})", "a boolean is not allowed");
    file.refuse_header(R"({"x":[]})", "an array is not allowed");
    file.refuse_header(R"({"x":"F32"})", "a string is not allowed");
    file.refuse_header(R"({"__metadata__":3})", "a number is not allowed");
    file.refuse_header(R"({"__metadata__":{"a":3}})", "a number is not allowed");
    file.refuse_header(R"({"__metadata__":{"a":{}}})", "an object is not allowed");
    file.refuse_header(R"({"__metadata__":{"a":["b"]}})", "an array is not allowed");
    file.refuse_fields(R"("dtype":{"F32":1},"shape":[2],"data_offsets":[0,8])", "an object");
    file.refuse_fields(R"("dtype":7,"shape":[2],"data_offsets":[0,8])", "a number");
    file.refuse_fields(R"("dtype":"F32","shape":2,"data_offsets":[0,8])", "a number");
    file.refuse_fields(R"("dtype":"F32","shape":"2","data_offsets":[0,8])", "a string");
    file.refuse_fields(R"("dtype":"F32","shape":[[2]],"data_offsets":[0,8])", "an array");
    file.refuse_fields(R"("dtype":"F32","shape":[{}],"data_offsets":[0,8])", "an object");
    file.refuse_fields(R"("dtype":"F32","shape":["2"],"data_offsets":[0,8])", "a string");
    file.refuse_fields(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])", "a negative number");
    file.refuse_fields(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])", "no 64-bit integer");
    file.refuse_fields(R"("dtype":"F32","shape":[2e0],"data_offsets":[0,8])", "no 64-bit integer");
    file.refuse_fields(R"("dtype":"F32","shape":[2],"data_offsets":{"0":8})", "an object");
    file.refuse_fields(R"("dtype":"F32","shape":[2],"data_offsets":[-8,0])", "a negative number");
    file.refuse_fields(R"("dtype":"F32","shape":[2],"data_offsets":[0,8.5])", "no 64-bit integer");
    file.refuse_fields(R"("dtype":"F32","shape":[2],"data_offsets":[0,1e999])", "no valid JSON");
}

TEST_CASE("a name or a field that comes twice is refused") {
    const Hostile file;
    file.refuse_header(object_of({tensor_of("x", 0, 4), tensor_of("x", 4, 8)}),
                       "it names \"x\" twice", "12345678");
    file.refuse_header(object_of({tensor_of("x", 0, 4), tensor_of("\\u0078", 4, 8)}),
                       "it names \"x\" twice", "12345678");
    file.refuse_header(R"({"__metadata__":{},"__metadata__":{}})", "twice");
    file.refuse_header(R"({"__metadata__":{"a":"1","a":"1"}})", "the field \"a\" twice");
    file.refuse_fields(R"("dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8])",
                       "the field \"dtype\" twice");
    file.refuse_fields(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"data_offsets":[0,8])",
                       "the field \"data_offsets\" twice");
}

TEST_CASE("fields that are missing, unknown or too many are refused") {
    const Hostile file;
    file.refuse_fields("", "has no dtype");
    file.refuse_fields(R"("shape":[2],"data_offsets":[0,8])", "has no dtype");
    file.refuse_fields(R"("dtype":"F32","data_offsets":[0,8])", "has no shape");
    file.refuse_fields(R"("dtype":"F32","shape":[2])", "has no data_offsets");
    file.refuse_fields(R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"order":"C")",
                       "\"order\"");
    file.refuse_fields(R"("dtype":"F32","shape":[2],"data_offsets":[])", "0 data_offsets");
    file.refuse_fields(R"("dtype":"F32","shape":[2],"data_offsets":[8])", "1 data_offsets");
    file.refuse_fields(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])", "more than two");
    file.refuse_fields(R"("dtype":"F64","shape":[2],"data_offsets":[0,8])", "take 16 bytes");
    file.refuse_fields(R"("dtype":"F4","shape":[15],"data_offsets":[0,8])", "which fill no bytes");
    file.refuse_fields(R"("dtype":"F4","shape":[9223372036854775807],"data_offsets":[0,8])",
                       "which fill no bytes");
    file.refuse_fields(R"("dtype":"F77","shape":[2],"data_offsets":[0,9])", "holds 8 bytes");
    file.refuse_fields(R"("dtype":"f32","shape":[2],"data_offsets":[0,8])", "the dtype \"f32\"");
    file.refuse_fields(R"("dtype":"","shape":[2],"data_offsets":[0,8])", "the dtype \"\"");
    file.refuse_fields(R"("dtype":"F32","shape":[1,1,1,1,1,2],"data_offsets":[0,8])",
                       "more than 5 dimensions");
}

TEST_CASE("offsets outside the data, backwards or of another size are refused") {
    const Hostile file;
    file.refuse_fields(R"("dtype":"F32","shape":[3],"data_offsets":[0,12])", "holds 8 bytes");
    file.refuse_fields(R"("dtype":"F32","shape":[2],"data_offsets":[8,16])", "holds 8 bytes");
    file.refuse_fields(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])",
                       "end before they begin");
    file.refuse_fields(R"("dtype":"F32","shape":[0],"data_offsets":[9,9])", "holds 8 bytes");
    file.refuse_fields(
        R"("dtype":"F32","shape":[2],"data_offsets":[18446744073709551608,18446744073709551615])",
        "holds 8 bytes");
    file.refuse_fields(R"("dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551616])",
                       "no 64-bit integer");
    file.refuse_fields(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])", "take 12 bytes");
    file.refuse_fields(R"("dtype":"F32","shape":[1],"data_offsets":[0,8])", "take 4 bytes");
    file.refuse_fields(R"("dtype":"F32","shape":[],"data_offsets":[0,8])", "take 4 bytes");
    file.refuse_fields(R"("dtype":"F32","shape":[0],"data_offsets":[0,8])", "take 0 bytes");
}

TEST_CASE("sizes that overflow are refused, and not taken for small ones") {
    const Hostile file;
    // 2^62 * 4 and 2^32 * 2^32 are 0 in 64 bits.
    file.refuse_fields(R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0])",
                       "overflows");
    file.refuse_fields(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])",
                       "overflows");
    // Were it not for the 0, strides would overflow.
    file.refuse_fields(R"("dtype":"F32","shape":[0,4294967296,4294967296,2],"data_offsets":[0,0])",
                       "overflows");
    file.refuse_fields(R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8])",
                       "a dimension of 9223372036854775808");
    file.refuse_fields(R"("dtype":"F32","shape":[18446744073709551617],"data_offsets":[0,8])",
                       "no 64-bit integer");
}

TEST_CASE("overlaps, holes and bytes of no tensor are refused") {
    const Hostile file;
    const std::string data(8, '\0');
    const auto two = [](int begin1, int end1, int begin2, int end2) {
        return object_of({tensor_of("a", begin1, end1), tensor_of("b", begin2, end2)});
    };
    file.refuse_header(two(0, 5, 4, 8), "tensor \"b\" begins at byte 4, inside another", data);
    file.refuse_header(two(4, 8, 0, 5), "tensor \"a\" begins at byte 4, inside another", data);
    file.refuse_header(two(0, 8, 0, 8), "inside another", data);
    file.refuse_header(two(0, 8, 2, 4), "inside another", data);
    file.refuse_header(two(0, 8, 4, 4), "inside another", data);
    file.refuse_header(two(0, 3, 4, 8), "the bytes from 3 to 4 belong to no tensor", data);
    file.refuse_header(two(1, 4, 4, 8), "the bytes from 0 to 1 belong to no tensor", data);
    file.refuse_header(two(0, 4, 4, 7), "the last 1 bytes belong to no tensor", data);
    file.refuse_header("{}", "the last 8 bytes belong to no tensor", data);
}

TEST_CASE("a BOOL is 0 or 1") {
    const Hostile file;
    const std::string header = R"({"mask":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})";
    file.refuse_header(header, "element 2 of the BOOL tensor \"mask\" is 2",
                       std::string("\0\1\2", 3));
    file.refuse_header(header, "is 255", "\xFF\x01\x01");
}

TEST_CASE("headers made to exhaust memory or the stack are refused at once") {
    const Hostile file;
    std::string arrays = "{\"x\":";
    arrays.append(1'000'000, '[');
    file.refuse_header(arrays, "an array is not allowed");
    std::string objects = "{";
    for (int i = 0; i < 100'000; ++i)
        objects += "\"x\":{";
    file.refuse_header(objects, "\"x\"");
    std::string name = "{\"";
    name.append(1'000'000, 'x').append("\":1}");
    file.refuse_header(name, "xxx...");
    file.refuse_header(R"({"a\nb\u0000\u001b[31m":1})", R"("a\nb\u0000\u001b[31m")");
}

TEST_CASE("a file cut anywhere is refused") {
    const Hostile file;
    const std::string whole =
        safetensors_bytes(object_of({tensor_of("a", 0, 4), tensor_of("b", 4, 8)}), "12345678");
    for (std::size_t length = 0; length < whole.size(); ++length) {
        file.refuse(whole.substr(0, length), "is no valid safetensors file");
    }
}

TEST_CASE("files with a few random bytes changed are read or refused, nothing else") {
    Random random = Random::fresh();
    INFO(random.text());
    const TempDir directory;
    const std::string path = directory.file("random");
    const std::string whole = safetensors_bytes(
        object_of({tensor_of("a", 0, 4), R"("__metadata__":{"k":"v"})", tensor_of("b", 4, 8)}),
        "12345678");
    int refused = 0;
    for (int i = 0; i < 1000; ++i) {
        std::string bytes = whole;
        for (std::int64_t n = random.integer(1, 3); n > 0; --n) {
            const auto last = static_cast<std::int64_t>(bytes.size()) - 1;
            bytes[static_cast<std::size_t>(random.integer(0, last))] =
                static_cast<char>(random.integer(0, 255));
        }
        write_bytes(path, bytes);
        try {
            TensorFile::read(path);
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::invalid_argument);
            ++refused;
        }
    }
    CHECK(refused > 300);
}

TEST_CASE("what is no readable file is an I/O error that names it") {
    const TempDir directory;
    const std::string pipe = directory.file("pipe");
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    for (const std::string& path :
         {directory.file("missing"), directory.path().string(), pipe, std::string("/dev/zero")}) {
        try {
            TensorFile::read(path);
            FAIL_CHECK("accepted: ", path);
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::io);
            CHECK(std::string(error.what()).find(path) != std::string::npos);
        }
    }
}
