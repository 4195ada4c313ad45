#include "model/causal_names.h"

static const struct causal_names gpt2_directory = {
    .prefix = "transformer.",
    .words = "wte",
    .positions = "wpe",
    .final_norm = "ln_f",
    .head = "lm_head",
    .layer = "h.",
    .attention_norm = "ln_1",
    .inner_norm = "ln_2",
    .joined = "attn.c_attn",
    .output = "attn.c_proj",
    .up = "mlp.c_fc",
    .down = "mlp.c_proj",
    .in_out = true,
    .buffers = {".attn.bias", ".attn.masked_bias"}, /* a causal mask, and what stands for −inf */
};

static const struct causal_names llama_directory = {
    .prefix = "model.",
    .words = "embed_tokens",
    .final_norm = "norm",
    .head = "lm_head",
    .layer = "layers.",
    .attention_norm = "input_layernorm",
    .inner_norm = "post_attention_layernorm",
    .query = "self_attn.q_proj",
    .key = "self_attn.k_proj",
    .value = "self_attn.v_proj",
    .output = "self_attn.o_proj",
    .gate = "mlp.gate_proj",
    .up = "mlp.up_proj",
    .down = "mlp.down_proj",
    .buffers = {".self_attn.rotary_emb.inv_freq"}, /* theta^(−2i/d), which is computed */
};

static const struct causal_names gpt2_gguf = {
    .prefix = "",
    .words = "token_embd",
    .positions = "position_embd",
    .final_norm = "output_norm",
    .head = "output",
    .layer = "blk.",
    .attention_norm = "attn_norm",
    .inner_norm = "ffn_norm",
    .joined = "attn_qkv",
    .output = "attn_output",
    .up = "ffn_up",
    .down = "ffn_down",
};

static const struct causal_names llama_gguf = {
    .prefix = "",
    .words = "token_embd",
    .final_norm = "output_norm",
    .head = "output",
    .layer = "blk.",
    .attention_norm = "attn_norm",
    .inner_norm = "ffn_norm",
    .query = "attn_q",
    .key = "attn_k",
    .value = "attn_v",
    .output = "attn_output",
    .gate = "ffn_gate",
    .up = "ffn_up",
    .down = "ffn_down",
    .buffers = {".attn_rot_embd"},
};

const struct causal_names *causal_names_of(enum model_kind kind, bool gguf)
{
    if (kind == MODEL_GPT2)
        return gguf ? &gpt2_gguf : &gpt2_directory;
    return gguf ? &llama_gguf : &llama_directory;
}
