// Heads and head dimensions of each layer of a model.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/models/fields.hpp"
#include "policy/models/findings.hpp"
#include "policy/models/names.hpp"
#include "policy/models/types.hpp"

namespace jitney::policy {

// 0: not known.
struct Heads {
    int q = 0;
    int kv = 0;
    int dim = 0;    // of q and k
    int v_dim = 0;  // of v
};

class HeadReader {
  public:
    // `part` is "", or "encoder_" and "decoder_" of a type that has both. What is missing goes into
    // the findings, unless the type is refused as it is.
    HeadReader(const Fields& config, const ModelType& type, std::string_view part,
               Findings& findings);

    // Throws Error where KV heads do not divide the heads.
    Heads of(std::size_t layer, LayerKind kind) const;

    // Throws Error where a list of the file has not a number for each layer.
    void check_lists(std::size_t layers) const;
    // How many layers the lists of the file are of; 1 where it has none.
    std::size_t listed() const;

  private:
    using Values = std::vector<int>;

    void read_heads(std::string_view part);
    void read_kv_heads(std::string_view part);
    std::optional<Values> named_dims() const;
    void read_dims();
    void read_overrides();
    void check(const Heads& heads) const;

    Fields config_;
    const ModelType& type_;
    Findings& findings_;
    Values q_;
    Values kv_;   // empty: as many as heads
    Values dim_;  // empty: hidden / heads
    Values v_dim_;
    std::optional<int> hidden_;
    std::map<std::size_t, Heads> layers_;  // what single layers have otherwise
    std::map<std::size_t, int> groups_;    // heads that share a KV head, of single layers
    Heads sliding_;                        // what layers of one kind have otherwise
    Heads global_;
};

}  // namespace jitney::policy
