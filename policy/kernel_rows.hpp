// Every kernel, one row each: its name and its KernelInfo. A row is all that texts, parsing, the
// compile, forcing by name and the memory of a launch need of a kernel. kernels.hpp includes this
// file for the KernelIds and kernels.cpp for the registry, both in this order; the words that rows
// are made of are in kernels.cpp.

JITNEY_KERNEL(attn_decode_scalar,
              {.operation = "attention",
               .source = "attention/decode_scalar.cuh",
               .minimum_arch = 75,
               .constants = {head_dim(512, 1), format(kFloating), kScalarTile, kKv, kCausal, kMask,
                             kWindow, kSoftcap, kAlibi, kSinks, kAppend, kLogits},
               .shared_bytes = scalar_bytes})

JITNEY_KERNEL(attn_decode_mma,
              {.operation = "attention",
               .source = "attention/decode_mma.cuh",
               .minimum_arch = 80,
               .constants = {head_dim(256, 8), format(k16Bit), tile({16, 16}, {16, 64, 16}),
                             stages(3, 16), kKv, kCausal, kMask, kWindow, kSoftcap, kAlibi, kSinks,
                             kAppend, kLogits},
               .shared_bytes = [](const Values& of) {
                   return decode_mma_shared_bytes(of["head_dim"], of["tile_m"], of["tile_n"],
                                                  of["stages"]);
               }})

JITNEY_KERNEL(attn_prefill_scalar,
              {.operation = "attention",
               .source = "attention/prefill_scalar.cuh",
               .minimum_arch = 75,
               .constants = {head_dim(512, 1), format(kFloating), kScalarTile, kQueries, kKv,
                             kCausal, kMask, kWindow, kSoftcap, kAlibi, kSinks, kLogits},
               .shared_bytes = scalar_bytes})

JITNEY_KERNEL(attn_prefill_mma,
              {.operation = "attention",
               .source = "attention/prefill_mma.cuh",
               .minimum_arch = 80,
               .constants = {head_dim(256, 8), format(k16Bit), tile({64, 128, 64}, {16, 128, 16}),
                             kQueries, kKv, kCausal, kMask, kWindow, kSoftcap, kAlibi, kSinks,
                             kLogits},
               .shared_bytes = [](const Values& of) {
                   const int logits = row_logits_bytes(of["softcap"] != 0 || of["alibi"] != 0,
                                                       logits_digest(of.spec) != 0);
                   return prefill_mma_layout(of["head_dim"], of["tile_m"], of["tile_n"],
                                             of["kv"] == kPagedKv, logits, of["mask"] != 0)
                       .bytes;
               }})

JITNEY_KERNEL(attn_work_map, {.operation = "attention",
                              .source = "attention/work_map.cuh",
                              .minimum_arch = 75,
                              .helper = true,
                              .constants = {kThreads},
                              .shared_bytes = [](const Values& of) {
                                  return work_map_shared_bytes(of["threads"]);
                              }})

JITNEY_KERNEL(attn_mask_bits, {.operation = "attention",
                               .source = "attention/mask_bits.cuh",
                               .minimum_arch = 80,
                               .helper = true,
                               .constants = {kThreads},
                               .shared_bytes = [](const Values& of) {
                                   return mask_bits_shared_bytes(of["threads"]);
                               }})

JITNEY_KERNEL(attn_merge_states,
              {.operation = "merge_states",
               .source = "attention/merge_states.cuh",
               .minimum_arch = 75,
               .constants = {head_dim(512, 1), format(kFloating), power_of_two("width", 1, 4)}})

JITNEY_KERNEL(append_kv,
              {.operation = "append_kv",
               .source = "attention/append_kv.cuh",
               .minimum_arch = 75,
               .constants = {format(kFloating), power_of_two("pairs", 1, 8), kQueries, kKv,
                             omitted(one_of("rotary", kAppendRotary))},
               .shared_bytes = [](const Values&) { return append_shared_bytes(kAppendThreads); }})

JITNEY_KERNEL(rotary_emb, {.operation = "rotary_emb",
                           .source = "rotary/rotary_emb.cuh",
                           .minimum_arch = 75,
                           .constants = {format(kFloating), one_of("style", kRotaryStyles),
                                         power_of_two("pairs", 1, 8)}})

JITNEY_KERNEL(fp8_quantize,
              {.operation = "fp8_quantize",
               .source = "fp8/quantize.cuh",
               .minimum_arch = 75,
               .constants = {format(kFloating), format(k8Bit, "out"), one_of("codes", kFp8Codes),
                             option("amax"),
                             option("software")},  // bit by bit, where no instruction does it
               .shared_bytes = [](const Values& of) {
                   return fp8_quantize_shared_bytes((of["codes"] & kTransposedCodes) != 0,
                                                    of["amax"] != 0);
               }})

JITNEY_KERNEL(fp8_quantize_rows, {.operation = "fp8_quantize",
                                  .source = "fp8/quantize_rows.cuh",
                                  .minimum_arch = 75,
                                  .constants = {format(kFloating), format(k8Bit, "out"), kRowWidth,
                                                kRowThreads, kRowVectors},
                                  .shared_bytes =
                                      [](const Values& of) {
                                          return row_shared_bytes(of["threads"], of["vectors"],
                                                                  of["width"], kPlainResult);
                                      },
                                  .why_not = why_no_row})

JITNEY_KERNEL(fp8_quantize_groups,
              {.operation = "fp8_quantize",
               .source = "fp8/quantize_groups.cuh",
               .minimum_arch = 75,
               .constants = {format(kFloating), format(k8Bit, "out"),
                             // A group of 128 columns, or a block of as many rows of them.
                             integer("scale_rows", {1, 128, 1, true})},
               .shared_bytes =
                   [](const Values& of) { return fp8_group_shared_bytes(of["scale_rows"]); },
               .why_not = why_no_group})

JITNEY_KERNEL(
    fp8_gemm_mma,
    {.operation = "fp8_gemm",
     .source = "fp8/gemm_mma.cuh",
     .minimum_arch = 89,
     .constants = {format(k8Bit, "a"), format(k8Bit, "b"), format(kFloating | k8Bit, "out"),
                   tile({16, 128, 1, true}, {32, 128, 1, true}), stages(3, 16), flag("trans_a"),
                   flag("trans_b"),
                   option("unpack"),                // fp16 products: the tensor cores take no FP8
                   option("promote"),               // their sums are added up beside them
                   option("unaligned"),             // rows begin anywhere
                   kFp8Scales, option("grouped")},  // rows of a have a b for each group of them
     .shared_bytes =
         [](const Values& of) {
             return fp8_gemm_shared_bytes(of["tile_m"], of["tile_n"], of["stages"],
                                          of["unpack"] != 0, element_bytes(of["out"]));
         },
     .why_not = why_not_fp8_mma})

JITNEY_KERNEL(fp8_update, {.operation = "fp8_linear",
                           .source = "fp8/update.cuh",
                           .minimum_arch = 75,
                           .helper = true,
                           .constants = {kThreads},
                           .shared_bytes = [](const Values& of) { return of["threads"] / 32 * 4; }})

JITNEY_KERNEL(column_sums, {.operation = "fp8_linear",
                            .source = "fp8/column_sums.cuh",
                            .minimum_arch = 75,
                            .helper = true,
                            .constants = {format(kFloating), format(kFloating, "out")},
                            .shared_bytes = [](const Values&) { return kColumnSumsSharedBytes; }})

// Three warpgroups have 128 registers a thread until they share them out anew: too few for the
// accumulators of a wider output, and too few are left for a warp that looks through a mask. Nor do
// they gather rows of pages: keys on pages have to come in boxes.
JITNEY_KERNEL(attn_prefill_wgmma,
              {.operation = "attention",
               .source = "attention/prefill_wgmma.cuh",
               .minimum_arch = 90,
               .exact_arch = Arch{90, 'a'},
               .constants = {head_dim(256, 8), format(k16Bit), tile({128, 192, 64}, {64, 128, 16}),
                             stages(2, 8), stages(1, 3, "q_stages"), kQueries, kKv, kCausal, kMask,
                             kWindow, kSoftcap, kAlibi, kSinks, kLogits},
               .shared_bytes =
                   [](const Values& of) {
                       return prefill_wgmma_layout(of["head_dim"], of["head_dim"], of["tile_m"],
                                                   of["tile_n"], of["q_stages"], of["stages"],
                                                   of["mask"] != 0)
                           .bytes;
                   },
               .why_not = [](const Values& of) -> std::string_view {
                   if (of["mask"] != 0 && of["tile_n"] != 64 && of["tile_n"] != 128) {
                       return "a mask needs tiles of 64 or 128 keys";
                   }
                   if (of["tile_m"] <= 128) return {};
                   if (of["head_dim"] > 64) return "tiles of 192 rows need a head_dim up to 64";
                   return of["mask"] == 0 ? "" : "tiles of 192 rows take no mask";
               }})

JITNEY_KERNEL(rms_norm,
              {.operation = "rms_norm",
               .source = "norm/rms_norm.cuh",
               .minimum_arch = 75,
               .constants = {format(kFloating), one_of("weight", kNormWeights), kRowResult,
                             kRowWidth, kRowThreads, kRowVectors, option("residual"),
                             option("center"),  // LayerNorm
                             option("bias"), option("one_plus")},
               .shared_bytes = row_bytes,
               .why_not = why_no_row})

JITNEY_KERNEL(gated_activation,
              {.operation = "gated_activation",
               .source = "norm/gated_activation.cuh",
               .minimum_arch = 75,
               .constants = {format(kFloating), one_of("activation", kActivations), kRowResult,
                             kRowWidth, kRowThreads, kRowVectors},
               .shared_bytes = row_bytes,
               .why_not = why_no_row})

JITNEY_KERNEL(fp8_gemm_wgmma,
              {.operation = "fp8_gemm",
               .source = "fp8/gemm_wgmma.cuh",
               .minimum_arch = 90,
               .exact_arch = Arch{90, 'a'},
               .constants = {format(k8Bit, "a"), format(k8Bit, "b"),
                             format(kFloating | k8Bit, "out"), tile({16, 256, 16}, {16, 256, 16}),
                             stages(2, 16), stages(1, 8, "splits"),
                             option("swap"),     // rows of the output are the columns of wgmma
                             option("promote"),  // sums of 128 of k are added up in fp32
                             kFp8Scales, omitted(integer("pieces", {1, 4})), option("grouped")},
               .shared_bytes = [](const Values& of) { return fp8_wgmma_tiles(of).bytes(); },
               .why_not = why_not_fp8_wgmma})

JITNEY_KERNEL(attn_decode_cluster,
              {.operation = "attention",
               .source = "attention/decode_cluster.cuh",
               .minimum_arch = 90,
               .exact_arch = Arch{90, 'a'},
               .constants = {head_dim(256, 8), format(k16Bit), tile({16, 16}, {16, 64, 16}),
                             stages(3, 16), kQueries, kKv, kCausal, kMask, kWindow, kSoftcap,
                             kAlibi, kSinks, kAppend, kLogits},
               .shared_bytes = [](const Values& of) {
                   return decode_cluster_shared_bytes(of["head_dim"], of["tile_m"], of["tile_n"],
                                                      of["stages"]);
               }})
