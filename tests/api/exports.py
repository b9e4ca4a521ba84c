"""What libjitney.so exports: names of the public headers, and nothing else.

    python3 exports.py LIBRARY
"""
import re
import subprocess
import sys

# The rooms behind the public headers; their names stay inside.
INTERNAL = "policy|runtime|cache|reference|kernel_sources|checks|cli|detail"
PUBLIC = re.compile(
    r"(typeinfo for |typeinfo name for |vtable for |non-virtual thunk to )?"
    rf"jitney::(?!(?:{INTERNAL})::)[A-Za-z_]"
)
# What a program that uses the library needs to find.
EXPECTED = [
    "jitney::attention(",
    "jitney::rotary_emb(",
    "jitney::ops::attn_prefill(",
    "jitney::ops::attn_decode(",
    "jitney::ops::rotary_emb(",
    "jitney::prewarm(",
    "jitney::explain(",
    "jitney::last_run",
    "jitney::Scope::Scope(",
    "jitney::Tensor::contiguous(",
    "typeinfo for jitney::Error",
]


def exported_names(library):
    command = ["nm", "--dynamic", "--defined-only", "--demangle", library]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split(None, 2)[2] for line in lines]


def main():
    names = exported_names(sys.argv[1])
    strangers = [name for name in names if not PUBLIC.match(name)]
    missing = [want for want in EXPECTED if not any(name.startswith(want) for name in names)]
    for name in strangers:
        print(f"exported, and no name of the public headers: {name}")
    for name in missing:
        print(f"not exported: {name}")
    print(f"{len(names)} names, {len(strangers)} strangers, {len(missing)} missing")
    return 1 if strangers or missing else 0


if __name__ == "__main__":
    sys.exit(main())
