"""The problems on which libattn is compared with its peers. bench/ of the source tree uses them too."""
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shape:
    """`kind`: dense, causal; decode (libattn's attn_decode); keep (a boolean mask [1, 1, L, L]), padding (a
    boolean mask [B, 1, 1, L]), bias (an additive one, [1, H, L, L]). `backward`: the gradients of q, k and v."""

    kind: str
    queries: int
    keys: int
    dim: int
    value_dim: int
    batch: int = 1
    heads: int = 8
    key_heads: int = 8
    type: str = "f32"
    backward: bool = False

    @property
    def name(self) -> str:
        """As `attn help bench` says, with the batch where it is not 1."""
        parts = [self.type, *(["backward"] if self.backward else []), self.kind]
        if self.kind == "decode":
            parts += [f"Lk{self.keys}"] + ([f"Lq{self.queries}"] if self.queries != 1 else [])
        else:
            parts += [f"L{self.queries}"] + ([f"Lk{self.keys}"] if self.keys != self.queries else [])
        parts += [f"b{self.batch}"] if self.batch != 1 else []
        if self.key_heads != self.heads:
            parts.append(f"h{self.heads}-{self.key_heads}")
        elif self.heads != 8:
            parts.append(f"h{self.heads}")
        parts.append(f"d{self.dim}")
        parts += [f"v{self.value_dim}"] if self.value_dim != self.dim else []
        return "-".join(parts)

    @property
    def products(self) -> int:
        """Multiplications of Q·Kᵀ and of the weights with V; of the gradients' products with `backward`."""
        pairs = self.batch * self.heads * self.queries * self.keys
        if self.backward:
            return pairs * (3 * self.dim + 2 * self.value_dim)
        return pairs * (self.dim + self.value_dim)


def shape(
    kind: str,
    length: int,
    dim: int,
    keys: int | None = None,
    value_dim: int | None = None,
    key_heads: int | None = None,
    heads: int = 8,
    **rest: Any,
) -> Shape:
    return Shape(kind, length, keys or length, dim, value_dim or dim, heads=heads, key_heads=key_heads or heads, **rest)


def standard() -> list[Shape]:
    """All of them, the usual ones first. What attn_decode is made for comes once with it and once with
    attn_forward."""
    decoders: tuple[dict[str, int], ...] = (
        {"heads": 12},
        {"heads": 12, "batch": 8},
        {"heads": 32, "key_heads": 8},
    )
    return [
        shape("dense", 128, 64, heads=12),
        *(shape(kind, 2048, dim) for kind in ("dense", "causal") for dim in (64, 128)),
        *(shape(kind, 2048, dim, type=type) for type in ("bf16", "f16") for kind in ("dense", "causal")
          for dim in (64, 128)),  # fmt: skip
        *(shape("dense", length, 64, heads=12, batch=batch) for batch in (1, 8)
          for length in (1, 2, 7, 16, 33, 64)),  # fmt: skip
        *(shape("causal", length, 64, heads=12) for length in (2, 16, 64, 128, 256, 512)),
        *(shape(kind, 1, 64, keys=keys, **rest) for keys in (128, 2048) for rest in decoders
          for kind in ("dense", "decode")),  # fmt: skip
        *(shape(kind, 16, 128, keys=2048, heads=32, key_heads=8) for kind in ("dense", "decode")),
        *(shape("dense", 512, dim) for dim in (1, 40, 80, 96, 256)),
        shape("dense", 512, 64, value_dim=128),
        shape("dense", 512, 128, value_dim=64),
        shape("dense", 512, 192, value_dim=128, heads=16),
        *(shape(kind, 1023, 64) for kind in ("dense", "causal")),
        *(shape(kind, 1024, 64, heads=1) for kind in ("dense", "causal")),
        shape("dense", 100, 64, keys=1000),
        *(shape(kind, 1024, 128, heads=32, key_heads=8) for kind in ("dense", "causal")),
        shape("padding", 128, 64, batch=8, heads=12),
        *(shape("keep", length, 64) for length in (128, 1024)),
        *(shape("bias", length, 64) for length in (128, 1024)),
        *(shape(kind, length, dim, backward=True) for kind in ("dense", "causal")
          for length in (512, 2048) for dim in (64, 128)),  # fmt: skip
        *(shape(kind, 2048, dim, type="bf16", backward=True) for kind in ("dense", "causal")
          for dim in (64, 128)),  # fmt: skip
        shape("dense", 128, 64, batch=8, heads=12, backward=True),
        shape("causal", 256, 64, batch=4, heads=12, backward=True),
        shape("causal", 1024, 128, heads=32, key_heads=8, backward=True),
        shape("bias", 1024, 64, backward=True),
    ]
