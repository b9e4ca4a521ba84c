// How a problem, a call that is asked about without tensors, is told in fewer words than its
// fields: by options that name sizes, from which the shapes of the tensors follow. `jitney explain`
// and `jitney bench` take these beside the fields themselves.
#pragma once

namespace jitney {

// Texts of shapes and conditions are those of OperationField (operations.hpp); a condition can also
// be the name of an option that was given. Lists have '|' between their names.
struct ProblemOption {
    enum class Says {
        flag,
        shape,    // sizes, by the text of a shape in `of`
        size,     // one of them, whose name is `of`
        lengths,  // of each request: `of` names their number, and the rows of what: "batch of q"
        word,     // that of the field, or the dtype of the tensors, in `of`; or "none"
        choice,   // one of the words in `of`, the first where it is left out; no word where one of
                  // `without` holds
        operation,  // the problem is of the operation `of`, with the same sizes
        nothing,    // no option: `gives` counts where the condition `of` holds
    };

    const char* name;
    Says says;
    const char* of = "";
    const char* meaning = "";
    // The tensors that the call has then: "bias"; "-out": one that it has not; "scale_a [m, k /
    // 128]": with that of its shapes.
    const char* gives = "";
    const char* like = "";       // the field whose shape it is where it is left out
    const char* with = "";       // a condition without which it says nothing
    const char* without = "";    // those under which it says nothing
    const char* otherwise = "";  // what a sentence says of it then: "is of a --style, ..."
    int least = 1;               // of a size
};

// A size that no option tells: what is known of it, and what it has to be.
struct ProblemSize {
    const char* name;
    const char* otherwise = "";  // expressions of other sizes, of which the first known one counts
    const char* called = "";     // in a sentence: "the rotary dimension"
    bool even = false;
    const char* at_most = "";  // another size
    const char* because = "";  // behind the sentence
};

}  // namespace jitney
