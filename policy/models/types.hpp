// The facts about model types beyond the fields of their configurations: the values that a file
// leaves out, how the rotary embedding pairs elements, and which kinds of layers alternate.
#pragma once

#include <cstdint>
#include <string_view>

namespace jitney::policy {

// 0 where the type has no default, or makes it from the others.
struct Sizes {
    int hidden = 0;
    int heads = 0;
    int kv_heads = 0;  // 0: as many as heads
    int head_dim = 0;  // 0: hidden / heads
    int layers = 0;
};

// How a type tells positions to its attention. `asked`: half_split where position_embedding_type or
// its like says so, and not at all elsewhere. `unknown` is of types that are not in the table.
enum class Positions : std::uint8_t { none, half_split, interleaved, asked, alibi, unknown };

enum class Family : std::uint8_t { decoder, encoder, encoder_decoder };

// The keys that a layer's queries see.
enum class LayerKind : std::uint8_t {
    full,
    sliding,
    chunked,  // the keys of the query's own chunk
    cross,    // those of an encoder
    passed,   // no attention: a convolution, a recurrence, experts alone
    other,    // attention of a kind that is none of these
};

enum class Sinks : std::uint8_t { none, all, sliding };

struct ModelType {
    std::string_view name;
    Sizes sizes;
    Positions positions = Positions::unknown;

    Family family = Family::decoder;
    double rotary_share = 1;          // of each head
    int rotary_dim = 0;               // where the type has a number instead
    int alibi_unless_hidden = 0;      // ALiBi instead of rotary in models of another hidden_size
    int window = 0;                   // where the file has none; 0: then there is none
    bool windows_everywhere = false;  // a window is of every layer
    bool half_windows = false;        // a window of n is n / 2 keys to a side
    bool windows_are_asked = false;   // only with use_sliding_window
    // Every period-th layer sees all keys, the others are of another kind.
    LayerKind others = LayerKind::full;
    int period = 0;
    int first = 0;         // the layer of a period that does
    bool crosses = false;  // some layers see the keys of an encoder
    bool full_layers_without_rotary = false;
    int global_head_dim = 0;   // of layers that see all keys; 0: as of the others
    bool multi_query = false;  // one KV head unless the file says otherwise
    double softcap = 0;
    Sinks sinks = Sinks::none;
    std::string_view bias;     // the field of a learned bias that self-attention adds to the scores
    std::string_view refusal;  // why none of its layers is served
    bool attends = true;

    template <class Value>
    constexpr ModelType with(Value ModelType::*member, Value value) const {
        ModelType changed = *this;
        changed.*member = value;
        return changed;
    }

    constexpr ModelType encoder() const { return with(&ModelType::family, Family::encoder); }
    constexpr ModelType encoder_decoder() const {
        return with(&ModelType::family, Family::encoder_decoder);
    }
    constexpr ModelType partial(double share) const {
        return with(&ModelType::rotary_share, share);
    }
    constexpr ModelType rotated(int dim) const { return with(&ModelType::rotary_dim, dim); }
    constexpr ModelType alibi_unless(int hidden) const {
        return with(&ModelType::alibi_unless_hidden, hidden);
    }
    constexpr ModelType windowed(int keys = 0) const {
        return with(&ModelType::window, keys).with(&ModelType::windows_everywhere, true);
    }
    constexpr ModelType asked_windows() const { return with(&ModelType::windows_are_asked, true); }
    constexpr ModelType sliding(int keys, int every) const {
        return with(&ModelType::window, keys).alternating(LayerKind::sliding, every, every - 1);
    }
    constexpr ModelType half_sliding(int keys, int every) const {
        return with(&ModelType::window, keys)
            .with(&ModelType::half_windows, true)
            .alternating(LayerKind::sliding, every, 0);
    }
    constexpr ModelType alternating(LayerKind kind, int every, int at) const {
        return with(&ModelType::others, kind)
            .with(&ModelType::period, every)
            .with(&ModelType::first, at);
    }
    constexpr ModelType crossing() const { return with(&ModelType::crosses, true); }
    constexpr ModelType full_without_rotary() const {
        return with(&ModelType::full_layers_without_rotary, true);
    }
    constexpr ModelType global(int head_dim) const {
        return with(&ModelType::global_head_dim, head_dim);
    }
    constexpr ModelType one_kv_head() const { return with(&ModelType::multi_query, true); }
    constexpr ModelType capped(double cap) const { return with(&ModelType::softcap, cap); }
    constexpr ModelType sunk(Sinks which) const { return with(&ModelType::sinks, which); }
    constexpr ModelType biased(std::string_view field) const {
        return with(&ModelType::bias, field);
    }
    constexpr ModelType refused(std::string_view why) const {
        return with(&ModelType::refusal, why);
    }
    constexpr ModelType without_attention() const { return with(&ModelType::attends, false); }
};

// Null where the table has no such type.
const ModelType* find_model_type(std::string_view name) noexcept;

// The type of a model's part that writes text, where that part does not say; empty: not known.
std::string_view text_type_of(std::string_view name) noexcept;

}  // namespace jitney::policy
