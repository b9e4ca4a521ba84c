#include "cli/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "jitney/error.hpp"

namespace jitney::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<DType, const char*>, 8> kNames{{{DType::fp32, "F32"},
                                                               {DType::fp16, "F16"},
                                                               {DType::bf16, "BF16"},
                                                               {DType::fp8_e4m3, "F8_E4M3"},
                                                               {DType::fp8_e5m2, "F8_E5M2"},
                                                               {DType::boolean, "BOOL"},
                                                               {DType::int32, "I32"},
                                                               {DType::int64, "I64"}}};
// Of the format's other dtypes, how many bits an element has.
constexpr std::array<std::pair<const char*, std::uint64_t>, 14> kOtherBits{{{"F64", 64},
                                                                            {"U64", 64},
                                                                            {"C64", 64},
                                                                            {"U32", 32},
                                                                            {"I16", 16},
                                                                            {"U16", 16},
                                                                            {"I8", 8},
                                                                            {"U8", 8},
                                                                            {"F8_E8M0", 8},
                                                                            {"F8_E4M3FNUZ", 8},
                                                                            {"F8_E5M2FNUZ", 8},
                                                                            {"F6_E2M3", 6},
                                                                            {"F6_E3M2", 6},
                                                                            {"F4", 4}}};
constexpr const char* kMetadata = "__metadata__";
constexpr std::uint64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void fail(const std::string& file, const std::string& reason) {
    throw Error(ErrorCode::invalid_argument, file + " is no valid safetensors file: " + reason);
}

// Takes the events of the JSON parser and fails at the first that the format has no place for. No
// tree is built, so a hostile header costs no more memory than the entries that it spells out, and
// a name that comes twice is seen.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
  public:
    HeaderReader(SafetensorsHeader& header, const std::string& file)
        : header_(header), file_(file) {}

    bool start_object(std::size_t) override {
        if (place_ == Place::outside) {
            place_ = Place::header;
        } else if (place_ == Place::header_value) {
            const bool metadata = name_ == kMetadata;
            place_ = metadata ? Place::metadata : Place::tensor;
            fields_.clear();
            if (!metadata) header_.entries.push_back({name_, DType::fp32, {}, {}, 0, 0});
        } else {
            misplaced("an object");
        }
        return true;
    }

    bool key(std::string& key) override {
        if (place_ == Place::header) {
            if (!names_.insert(key).second) fail(file_, "it names " + text_of_name(key) + " twice");
            name_ = key;
            place_ = Place::header_value;
            return true;
        }
        if (!fields_.insert(key).second) {
            fail(file_, text_of_name(name_) + " has the field " + text_of_name(key) + " twice");
        }
        if (place_ == Place::metadata) {
            field_ = key;
            place_ = Place::metadata_value;
        } else if (key == "dtype") {
            place_ = Place::dtype;
        } else if (key == "shape") {
            place_ = Place::shape;
        } else if (key == "data_offsets") {
            place_ = Place::offsets;
        } else {
            fail(file_, "tensor " + text_of_name(name_) + " has the field " + text_of_name(key) +
                            ", which is none of dtype, shape and data_offsets");
        }
        return true;
    }

    bool string(std::string& text) override {
        if (place_ == Place::metadata_value) {
            header_.metadata[field_] = text;
            place_ = Place::metadata;
        } else if (place_ == Place::dtype) {
            set_dtype(text);
            place_ = Place::tensor;
        } else {
            misplaced("a string");
        }
        return true;
    }

    bool start_array(std::size_t) override {
        if (place_ == Place::shape) {
            place_ = Place::shape_list;
        } else if (place_ == Place::offsets) {
            place_ = Place::offsets_list;
            offsets_.clear();
        } else {
            misplaced("an array");
        }
        return true;
    }

    bool number_unsigned(std::uint64_t value) override {
        if (place_ == Place::shape_list) {
            auto& shape = header_.entries.back().shape;
            if (value > kMaxInt64) {
                fail(file_, "tensor " + text_of_name(name_) + " has a dimension of " +
                                std::to_string(value) + ", more than any tensor can have");
            }
            if (shape.size() == static_cast<std::size_t>(Tensor::max_dims)) {
                fail(file_, "tensor " + text_of_name(name_) + " has more than " +
                                std::to_string(Tensor::max_dims) + " dimensions");
            }
            shape.push_back(static_cast<std::int64_t>(value));
        } else if (place_ == Place::offsets_list && offsets_.size() < 2) {
            offsets_.push_back(value);
        } else if (place_ == Place::offsets_list) {
            fail(file_, "tensor " + text_of_name(name_) + " has more than two data_offsets");
        } else {
            misplaced("a number");
        }
        return true;
    }

    bool end_array() override {
        if (place_ == Place::offsets_list) {
            if (offsets_.size() != 2) {
                fail(file_, "tensor " + text_of_name(name_) + " has " +
                                std::to_string(offsets_.size()) + " data_offsets instead of two");
            }
            header_.entries.back().begin = offsets_[0];
            header_.entries.back().end = offsets_[1];
        }
        place_ = Place::tensor;
        return true;
    }

    bool end_object() override {
        if (place_ == Place::tensor && fields_.size() != 3) {
            for (const char* field : {"dtype", "shape", "data_offsets"}) {
                if (!fields_.contains(field)) {
                    fail(file_, "tensor " + text_of_name(name_) + " has no " + field);
                }
            }
        }
        place_ = Place::header;
        return true;
    }

    bool null() override { misplaced("null"); }
    bool boolean(bool) override { misplaced("a boolean"); }
    bool number_integer(std::int64_t) override { misplaced("a negative number"); }
    bool number_float(double, const std::string&) override {
        misplaced("a number that is no 64-bit integer");
    }
    bool binary(nlohmann::json::binary_t&) override { misplaced("binary data"); }
    bool parse_error(std::size_t position, const std::string&,
                     const nlohmann::json::exception&) override {
        fail(file_, "the header is no valid JSON at its byte " + std::to_string(position));
    }

  private:
    // Where the next event belongs.
    enum class Place {
        outside,
        header,
        header_value,
        metadata,
        metadata_value,
        tensor,
        dtype,
        shape,
        shape_list,
        offsets,
        offsets_list,
    };

    // The format gains dtypes: a name that it could have is one, and only has no size.
    void set_dtype(const std::string& text) {
        TensorEntry& entry = header_.entries.back();
        const auto* const known =
            std::ranges::find_if(kNames, [&](const auto& name) { return text == name.second; });
        if (known != kNames.end()) {
            entry.dtype = known->first;
            return;
        }
        const auto is_of_names = [](char c) {
            return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        };
        if (text.empty() || text.size() > 16 || !std::ranges::all_of(text, is_of_names)) {
            fail(file_, "tensor " + text_of_name(name_) + " has the dtype " + text_of_name(text) +
                            ", which is the name of none");
        }
        entry.other_dtype = text;
    }

    [[noreturn]] void misplaced(const char* what) {
        static constexpr std::array kPlaces{
            "the header",           "the header",           "the value of ",
            "the metadata",         "a metadata value of ", "tensor ",
            "the dtype of ",        "the shape of ",        "the shape of ",
            "the data_offsets of ", "the data_offsets of "};
        std::string where = kPlaces[static_cast<std::size_t>(place_)];
        if (where.ends_with(' ')) where += text_of_name(name_);
        fail(file_, std::string(what) + " is not allowed as " + where);
    }

    SafetensorsHeader& header_;
    const std::string& file_;
    Place place_ = Place::outside;
    std::string name_;
    std::string field_;
    std::set<std::string> names_;
    std::set<std::string, std::less<>> fields_;
    std::vector<std::uint64_t> offsets_;
};

// 0 of a dtype that is not known.
std::uint64_t bits_of(const TensorEntry& entry) {
    if (entry.other_dtype.empty()) return 8 * static_cast<std::uint64_t>(size_of(entry.dtype));
    for (const auto& [name, bits] : kOtherBits) {
        if (entry.other_dtype == name) return bits;
    }
    return 0;
}

// Bytes of the entry's elements, of which one has `bits`; fails where they, or a stride, don't fit
// 63 bits.
std::uint64_t bytes_of(const TensorEntry& entry, std::uint64_t bits, const std::string& file) {
    const std::uint64_t most = kMaxInt64 / std::max<std::uint64_t>(bits / 8, 1);
    std::uint64_t elements = 1;
    bool empty = false;
    for (const std::int64_t size : entry.shape) {
        if (size == 0) {
            empty = true;
            continue;
        }
        if (elements > most / static_cast<std::uint64_t>(size)) {
            fail(file, "the size of tensor " + text_of_name(entry.name) + " overflows 64 bits");
        }
        elements *= static_cast<std::uint64_t>(size);
    }
    if (empty) return 0;
    const std::uint64_t rest = elements % 8 * bits;
    if (rest % 8 != 0) {
        fail(file, "tensor " + text_of_name(entry.name) + " has " + std::to_string(elements) +
                       " elements of " + std::to_string(bits) + " bits, which fill no bytes");
    }
    return elements / 8 * bits + rest / 8;
}

void check_bytes(const TensorEntry& entry, std::uint64_t data_bytes, const std::string& file) {
    const std::string range =
        "[" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + "]";
    if (entry.begin > entry.end) {
        fail(file, "tensor " + text_of_name(entry.name) + " has the data_offsets " + range +
                       ", which end before they begin");
    }
    if (entry.end > data_bytes) {
        fail(file, "tensor " + text_of_name(entry.name) + " has the data_offsets " + range +
                       ", but the file holds " + std::to_string(data_bytes) +
                       " bytes of data: it was cut short, or its header is wrong");
    }
    const std::uint64_t bits = bits_of(entry);
    if (bits == 0) return;
    const std::uint64_t bytes = bytes_of(entry, bits, file);
    if (bytes != entry.end - entry.begin) {
        fail(file, "tensor " + text_of_name(entry.name) + " has the data_offsets " + range +
                       ", but its shape and dtype take " + std::to_string(bytes) + " bytes");
    }
}

// The entries, in order, cover the data without gap or overlap.
void check_cover(const std::vector<TensorEntry>& entries, std::uint64_t data_bytes,
                 const std::string& file) {
    std::uint64_t covered = 0;
    for (const TensorEntry& entry : entries) {
        if (entry.begin < covered) {
            fail(file, "tensor " + text_of_name(entry.name) + " begins at byte " +
                           std::to_string(entry.begin) + ", inside another tensor");
        }
        if (entry.begin > covered) {
            fail(file, "the bytes from " + std::to_string(covered) + " to " +
                           std::to_string(entry.begin) + " belong to no tensor");
        }
        covered = entry.end;
    }
    if (covered != data_bytes) {
        fail(file,
             "the last " + std::to_string(data_bytes - covered) + " bytes belong to no tensor");
    }
}

}  // namespace

const char* safetensors_name_of(DType dtype) {
    const auto* const known =
        std::ranges::find(kNames, dtype, &std::pair<DType, const char*>::first);
    return known == kNames.end() ? "?" : known->second;
}

std::string text_of_name(std::string_view name) {
    constexpr std::size_t kLongest = 80;
    std::string shown(name.substr(0, kLongest));
    if (name.size() > kLongest) shown += "...";
    return Json(shown).dump(-1, ' ', true, Json::error_handler_t::replace);
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                           const std::string& file) {
    if (text.empty() || text.front() != '{') fail(file, "the header does not begin with '{'");
    // The JSON parser takes a NUL for the end of its input, and would not look at what follows.
    if (text.find('\0') != std::string_view::npos) fail(file, "the header contains a NUL byte");

    SafetensorsHeader header;
    HeaderReader reader(header, file);
    nlohmann::json::sax_parse(text.begin(), text.end(), &reader);

    for (const TensorEntry& entry : header.entries)
        check_bytes(entry, data_bytes, file);
    std::ranges::sort(header.entries, {}, [](const TensorEntry& entry) {
        return std::tuple(entry.begin, entry.end, std::string_view(entry.name));
    });
    check_cover(header.entries, data_bytes, file);
    return header;
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
    Json json = Json::object();
    if (!header.metadata.empty()) json[kMetadata] = header.metadata;
    for (const TensorEntry& entry : header.entries) {
        if (entry.name == kMetadata) {
            throw Error(ErrorCode::invalid_argument,
                        "a tensor can't be named __metadata__ in a safetensors file; rename it");
        }
        json[entry.name] = {{"dtype", safetensors_name_of(entry.dtype)},
                            {"shape", entry.shape},
                            {"data_offsets", {entry.begin, entry.end}}};
    }
    std::string text;
    try {
        text = json.dump();
    } catch (const Json::type_error&) {
        throw Error(ErrorCode::invalid_argument,
                    "a name or a metadata text is no valid UTF-8, as a safetensors file needs it");
    }
    text.append((8 - text.size() % 8) % 8, ' ');
    return text;
}

}  // namespace jitney::cli
