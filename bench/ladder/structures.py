"""The structures that attn_prefill_wgmma is launched with, as ctypes has them."""
import ctypes

_POINTER = ctypes.c_void_p
_INT = ctypes.c_int


def _struct(name, fields):
    return type(name, (ctypes.Structure,), {"_fields_": fields})


Strides = _struct("AttentionStrides", [(each, ctypes.c_longlong) for each in ("batch", "row", "head")])
MaskBits = _struct(
    "MaskBits",
    [("words", _POINTER), ("summary", _POINTER)] + [(each, _INT) for each in ("batch", "heads", "rows", "keys")],
)
AttentionParams = _struct(
    "AttentionParams",
    [(each, _POINTER) for each in ("q", "k", "v", "out", "lse", "mask")]
    + [(f"{each}_strides", Strides) for each in ("q", "k", "v", "out", "lse", "mask")]
    + [("mask_bits", MaskBits)]
    + [(each, _INT) for each in ("batch", "q_len", "kv_len", "kv_heads", "group", "row_tiles")]
    + [("scale_log2", ctypes.c_float)]
    + [(each, _POINTER) for each in ("qo_indptr", "tile_batch", "tile_index")]
    + [(each, _INT) for each in ("kv_lengths", "page_tables", "page_size")]
    + [("page_magic", ctypes.c_uint), ("page_shift", _INT), ("table_stride", _INT)]
    + [
        (each, _POINTER)
        for each in ("kv_indptr", "kv_lens", "page_table", "request_rows", "kv_page_indptr", "last_page_len")
    ]
    + [("window_left", _INT), ("window_right", _INT), ("softcap_scale", ctypes.c_float)]
    + [(each, _POINTER) for each in ("alibi_slopes", "sinks", "new_k", "new_v")]
    + [("new_k_strides", Strides), ("new_v_strides", Strides)]
    + [(each, _INT) for each in ("new_len", "splits", "split_keys", "split_parts")]
    + [(each, _POINTER) for each in ("partial_out", "partial_statistics", "arrived")]
    + [("caller_scale", ctypes.c_float), ("caller_values", ctypes.c_ulonglong * 4)],
)
TensorMapBits = _struct("TensorMapBits", [("bits", ctypes.c_ulonglong * 16)])
PrefillWgmmaParams = _struct(
    "PrefillWgmmaParams",
    [(each, TensorMapBits) for each in ("q", "k", "v", "out")]
    + [("attention", AttentionParams)]
    + [("groups_a_kv_head", _INT), ("heads_at_a_time", _INT), ("box_keys", _INT), ("next_tile", _POINTER)],
)


def layout_checks():
    """Lines for the kernel's text: that the structures here are those of the headers."""
    lines = []
    for struct in (AttentionParams, PrefillWgmmaParams):
        for field, _ in struct._fields_:
            offset = getattr(struct, field).offset
            lines.append(f"static_assert(__INTADDR__(&static_cast<{struct.__name__}*>(0)->{field}) == {offset});\n")
    return "".join(lines)
