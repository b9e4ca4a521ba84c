"""Variants of fp8_gemm_wgmma: their constants, and the text that NVRTC compiles."""
import dataclasses

FORMATS = {"fp32": 0, "fp16": 1, "bf16": 2, "e4m3": 3, "e5m2": 4}
BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "e4m3": 1, "e5m2": 1}


@dataclasses.dataclass(frozen=True)
class Variant:
    tile_m: int = 128
    tile_n: int = 128
    stages: int = 4
    promote: int = 0
    splits: int = 1
    swap: int = 0
    pieces: int = 0
    scales: str = "one"
    a: str = "e4m3"
    b: str = "e4m3"
    out: str = "bf16"
    grouped: int = 0

    @property
    def tile_u(self):
        return self.tile_n if self.swap else self.tile_m

    @property
    def tile_v(self):
        return self.tile_m if self.swap else self.tile_n

    @property
    def consumers(self):
        return 1 if self.tile_u == 64 else 2

    def threads(self):
        return (self.consumers + 1) * 128

    def shared_bytes(self):
        """As Fp8WgmmaTiles has it."""
        ring = self.stages * (self.tile_m + self.tile_n) * 128
        owners = self.splits
        while self.tile_v // 16 % owners:
            owners -= 1
        merge = 0 if self.splits == 1 else self.splits * self.tile_m * self.tile_n // owners * 4
        staging = self.consumers * (16 * 64 * BYTES[self.out] if self.swap else 4 * 16 * 128 * max(1, self.pieces))
        scales = self.stages * (self.tile_m + -(-self.tile_n // 128)) * 4 if self.scales == "blocks" else 0
        return ring + merge + staging + (2 * self.stages + 1) * 8 + self.threads() // 32 * 4 + scales

    def text(self, checks=""):
        numbers = dataclasses.asdict(self)
        for name in ("a", "b", "out"):
            numbers[name] = FORMATS[numbers[name]]
        numbers["scales"] = ("one", "sides", "blocks").index(self.scales)
        lines = "".join(f"    static constexpr int {name} = {value};\n" for name, value in numbers.items())
        return (
            '#include "fp8/gemm_wgmma.cuh"\n'
            f"namespace jitney {{\n{checks}"
            f"struct Constants {{\n{lines}}};\n"
            f"static_assert(Fp8WgmmaMemory<Constants>::kTiles.bytes() == {self.shared_bytes()});\n"
            "template __global__ void fp8_gemm_wgmma<Constants>(const __grid_constant__ "
            "Fp8GemmWgmmaParams);\n"
            "}\n"
        )
