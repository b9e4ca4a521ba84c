// The fields that say where the keys and values of each request stand. attention and append_kv have
// them in common, the calls of the reference and those of the library.
#pragma once

namespace jitney::reference {

template <class To, class From>
void copy_cache(To& to, const From& from) {
    to.k = from.k;
    to.v = from.v;
    to.kv_lens = from.kv_lens;
    to.kv_indptr = from.kv_indptr;
    to.req_to_token = from.req_to_token;
    to.req_pool_indices = from.req_pool_indices;
    to.block_table = from.block_table;
    to.kv_page_indptr = from.kv_page_indptr;
    to.kv_page_indices = from.kv_page_indices;
    to.last_page_len = from.last_page_len;
}

}  // namespace jitney::reference
