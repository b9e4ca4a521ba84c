"""Variants of attn_prefill_wgmma: their constants, and the text that NVRTC compiles."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Variant:
    head_dim: int = 128
    head_dim_v: int = 0  # 0: as head_dim
    format: str = "bf16"
    tile_m: int = 128
    tile_n: int = 128
    stages: int = 2
    causal: int = 0
    window: int = 0
    softcap: int = 0
    alibi: int = 0
    sinks: int = 0
    mask: int = 0
    queries: str = "dense"
    kv: str = "dense"
    q_stages: int = 3

    @property
    def dim_v(self):
        return self.head_dim_v or self.head_dim

    def name(self):
        parts = [f"d{self.head_dim}" + (f"/{self.dim_v}" if self.dim_v != self.head_dim else "")]
        parts.append(f"{self.tile_m}x{self.tile_n} s{self.stages}")
        default = Variant()
        for field in dataclasses.fields(self)[6:]:
            value = getattr(self, field.name)
            if value != getattr(default, field.name):
                parts.append(f"{field.name}={value}")
        if self.format != "bf16":
            parts.append(self.format)
        return " ".join(parts)

    def constants(self):
        formats = {"fp16": 1, "bf16": 2}
        queries = {"dense": 0, "packed": 1}
        keys = {"dense": 0, "paged": 1}
        numbers = dataclasses.asdict(self)
        numbers.update(
            head_dim_v=self.dim_v,
            format=formats[self.format],
            queries=queries[self.queries],
            kv=keys[self.kv],
        )
        return numbers

    def text(self, layout_checks=""):
        lines = "".join(
            f"    static constexpr int {name} = {value};\n"
            for name, value in self.constants().items()
        )
        return (
            '#include "attention/prefill_wgmma.cuh"\n'
            f"namespace jitney {{\n{layout_checks}"
            f"struct Constants {{\n{lines}}};\n"
            "template __global__ void attn_prefill_wgmma<Constants>(const __grid_constant__ "
            "PrefillWgmmaParams);\n"
            "}\n"
        )

    def shared_bytes(self):
        """As prefill_wgmma_layout has it."""

        def tile(rows, dim):
            return rows * ((dim + 63) // 64) * 128

        barriers = 2 * (self.q_stages * self.tile_m // 64 + 2 * self.stages + 5) + self.stages * self.mask
        return (
            self.q_stages * tile(self.tile_m, self.head_dim)
            + self.stages * (tile(self.tile_n, self.head_dim) + tile(self.tile_n, self.dim_v))
            + (barriers * 8 + 15) // 16 * 16
            + 4 * (96 + 256 * self.mask)
        )

    def threads(self):
        return (self.tile_m // 64 + 1) * 128
