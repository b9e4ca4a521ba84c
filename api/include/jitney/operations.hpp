// Every operation and its arguments, as data: what the reference of operations, `jitney ops` and
// `jitney run` are made of, and bindings can be. A call is made by the name of its operation, on
// the struct that jitney.h has for its arguments.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jitney/error.hpp"
#include "jitney/explain.hpp"
#include "jitney/logits.hpp"
#include "jitney/problem.hpp"
#include "jitney/tensor.hpp"

namespace jitney {

// A member of the struct in jitney.h that a field stands in.
struct CMember {
    std::string type;  // "tensor": a DLTensor*; "int32", "int64", "fp32", "size", "pointer"; and
                       // "structs", "logits_values"
    std::size_t offset = 0;
};

struct OperationField {
    enum class Kind {
        tensor,
        flag,           // an int32, 0 or 1
        integer,        // where it has two members, the first is 1 in calls that give it
        number,         // a float
        word,           // an int32: the place of one of `words`
        list,           // of structs of `elements`: a pointer, and how many
        host_copy,      // of the numbers of a tensor, in host memory; the second member is it
        logits,         // a logits function
        logits_values,  // the values of its parameters
        workspace,      // the caller's memory: a pointer, and bytes
    };
    // The use that a call makes of a tensor's memory.
    enum class Use {
        none,  // no tensor
        read,
        written,
        updated,  // read and written, or written in part
    };

    std::string name;  // "q"; of an element of a list "parts.out"
    Kind kind = Kind::tensor;
    Use use = Use::none;
    bool optional = false;
    std::string group;  // a struct in C++ whose fields are given together; empty: none
    std::string meaning;
    // A tensor's shapes: alternatives between " | ", each after "FIELD: " or "FIELD=WORD: "
    // where it is that of calls with that field; or the name of a tensor of the same shape. Sizes
    // are names, numbers, or sums, products and quotients of them; "rows..." is any number of them.
    std::string shape;
    std::vector<std::string> dtypes;  // those that can be given
    // The tensor whose dtype a result has; or the field whose word is its dtype, or else it
    // is the first of dtypes.
    std::string like;
    // The field with which an optional result is made, or a tensor that may be is written (others
    // read it); "FIELD=WORD": with that word; several of these after " and "; "always": as a rule.
    std::string when;
    bool read_else = false;  // where it is not written, it is read
    std::vector<std::string> words;
    std::string default_value;  // of a call that leaves it out; empty: its meaning says it, if any
    std::string option;         // another name of the command's option; empty: none
    std::string file;           // another name that the command's files may have for it; after
                                // " with " what it comes with, after " to " that of its result
    std::vector<CMember> c;
    std::vector<OperationField> elements;
};

struct OperationInfo {
    std::string name;  // "append_kv"
    std::string does;
    std::string c_function;
    std::string c_struct;
    std::size_t c_bytes = 0;           // of the struct
    std::vector<std::string> kernels;  // that can be asked for by name, in no order
    std::vector<OperationField> fields;
    // The short forms of a problem.
    std::span<const ProblemOption> problem;
    std::span<const ProblemSize> sizes;
};

// They live as long as the process.
JITNEY_API const std::vector<OperationInfo>& operations();
// All of that as JSON: `operations`, each with the members above, and `version`.
JITNEY_API std::string operations_json();

// The calls of an operation by its name; `args` is its struct in jitney.h. Throw Error for a name
// that none has, and what the call throws.
JITNEY_API void run_operation(std::string_view name, const void* args, Stream stream = nullptr);
// As jitney_explain_NAME tells it: json_of() what explain() answers.
JITNEY_API std::string explain_operation(std::string_view name, const void* args,
                                         std::string_view arch = {});
JITNEY_API std::string json_of(const Explanation& explanation);
JITNEY_API std::string json_of(const ExplainedLaunches& explanation);
// What a logits function declares, in order; and the function as C has it, a
// jitney_logits_function, null for none.
struct LogitsParameter {
    std::string type;  // "const float*"
    std::string name;
    LogitsValue::Kind kind = LogitsValue::Kind::none;
};
JITNEY_API std::vector<LogitsParameter> parameters_of(const LogitsFunction& function);
JITNEY_API const void* c_function_of(const LogitsFunction& function) noexcept;
// Checks arguments as the call does, and in host memory the values of its index tensors, which no
// kernel checks; launches nothing.
JITNEY_API void check_operation(std::string_view name, const void* args);

}  // namespace jitney
