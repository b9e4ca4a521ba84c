"""What libjitney.so exports: the functions of the C header under the version JITNEY_0.1, names of
the public C++ headers under JITNEY_CXX_0.1, and nothing else.

    python3 exports.py LIBRARY HEADER
"""
import re
import subprocess
import sys

# The rooms behind the public headers; their names stay inside.
INTERNAL = "policy|runtime|cache|reference|kernel_sources|checks|c_abi|cli|detail"
C_NODE = "JITNEY_0.1"
CXX_NODE = "JITNEY_CXX_0.1"
PUBLIC = re.compile(
    r"(typeinfo for |typeinfo name for |vtable for |non-virtual thunk to )?"
    rf"jitney::(?!(?:{INTERNAL})::)[A-Za-z_].*@@{re.escape(CXX_NODE)}"
)
# What a C++ program that uses the library needs to find.
EXPECTED = [
    "jitney::attention(",
    "jitney::rotary_emb(",
    "jitney::merge_states(",
    "jitney::LogitsFunction::LogitsFunction(",
    "jitney::LogitsFunction::from_source(",
    "jitney::append_kv(",
    "jitney::Kernel::Kernel(",
    "jitney::Kernel::launch_values(",
    "jitney::Kernel::prewarm(",
    "jitney::KernelConstant::KernelConstant(",
    "jitney::ops::attn_prefill(",
    "jitney::ops::attn_decode(",
    "jitney::ops::rotary_emb(",
    "jitney::ops::merge_states(",
    "jitney::rms_norm(",
    "jitney::ops::rms_norm(",
    "jitney::gated_activation(",
    "jitney::ops::gated_activation(",
    "jitney::prewarm(",
    "jitney::Cache::stat(",
    "jitney::compiler_state(",
    "jitney::serving_model(",
    "jitney::serving_specs(",
    "jitney::explain(",
    "jitney::last_run",
    "jitney::workspace_bytes(",
    "jitney::init_workspace(",
    "jitney::Plan<jitney::AttentionArgs>::Plan(",
    "jitney::Plan<jitney::AttentionArgs>::run(",
    "jitney::Plan<jitney::RotaryArgs>::run(",
    "jitney::Plan<jitney::AppendKvArgs>::run(",
    "jitney::Plan<jitney::MergeStatesArgs>::run(",
    "jitney::Plan<jitney::Fp8QuantizeArgs>::run(",
    "jitney::Plan<jitney::Fp8GemmArgs>::run(",
    "jitney::Plan<jitney::Fp8LinearArgs>::run(",
    "jitney::Plan<jitney::Fp8LinearBackwardArgs>::run(",
    "jitney::Plan<jitney::Fp8LinearInferenceArgs>::run(",
    "jitney::fp8_linear_inference(",
    "jitney::Scope::Scope(",
    "jitney::Tensor::contiguous(",
    "typeinfo for jitney::Error",
]


def exported_names(library):
    command = ["nm", "--dynamic", "--defined-only", "--demangle", library]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split(None, 2)[2] for line in lines]


def declared_functions(header):
    """The functions that the C header declares: their names stand at the start of a line."""
    with open(header, encoding="utf-8") as file:
        return re.findall(r"^(?:const char\*|jitney_status) (jitney_\w+)\(", file.read(), re.M)


def main():
    names = exported_names(sys.argv[1])
    functions = {f"{name}@@{C_NODE}" for name in declared_functions(sys.argv[2])}
    allowed = functions | {C_NODE, CXX_NODE}
    strangers = [name for name in names if name not in allowed and not PUBLIC.fullmatch(name)]
    missing = [want for want in EXPECTED if not any(name.startswith(want) for name in names)]
    missing += sorted(functions - set(names))
    if not functions:
        missing.append("any function of the C header")
    for name in strangers:
        print(f"exported, and no name of the public headers: {name}")
    for name in missing:
        print(f"not exported: {name}")
    print(f"{len(names)} names, {len(strangers)} strangers, {len(missing)} missing")
    return 1 if strangers or missing else 0


if __name__ == "__main__":
    sys.exit(main())
