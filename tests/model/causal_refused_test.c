/* What is not implemented is refused by its name: settings of Llama in config.json and in GGUF
 * files, and tensors. */
#define _GNU_SOURCE /* memmem */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "case_file.h"
#include "causal_scene.h"
#include "cmocka_test.h"
#include "scratch_folder.h"
#include "tiny_model.h"

static void open_path(const char *path, const char *message)
{
    struct model_source *source;
    struct causal_model *model = NULL;
    struct attn_error error;
    if (!model_source_open(&source, path, &error))
        fail_msg("%s", error.message);
    const bool opened = causal_model_open(&model, source, &error);
    if (!message && !opened)
        fail_msg("%s", error.message);
    if (message && opened)
        fail_msg("was opened, expected: %s", message);
    if (message)
        assert_message(&error, message);
    causal_model_close(model);
    model_source_close(source);
}

/* tiny_llama with fields of its config and tensors as these JSON objects have them, null to drop
 * one. A message of NULL: it is opened. */
static void check_directory(const char *fields, const char *tensors, enum tiny_storage storage,
                            const char *message)
{
    struct tiny_model tiny = tiny_model_read("tiny_llama");
    tiny.storage = storage;
    json_t *change = json_loads(fields, 0, NULL);
    assert_non_null(change);
    json_object_update(tiny.config, change);
    json_decref(change);
    const char *name;
    json_t *tensor;
    change = json_loads(tensors, 0, NULL);
    assert_non_null(change);
    json_object_foreach (change, name, tensor)
        if (json_is_null(tensor))
            json_object_del(tiny.tensors, name);
        else
            json_object_set(tiny.tensors, name, tensor);
    json_decref(change);
    char *folder = tiny_model_save(&tiny);
    open_path(folder, message);
    scratch_folder_remove(folder);
    tiny_model_free(&tiny);
}

static void test_config(void **state)
{
    (void)state;
    static const struct {
        const char *fields, *message;
    } cases[] = {
        {"{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.0}}",
         "config.json: rope_scaling of type linear is not supported"},
        {"{\"rope_scaling\": {\"rope_type\": \"llama3\"}}",
         "config.json: rope_scaling of type llama3 is not supported"},
        {"{\"rope_scaling\": {\"factor\": 2.0}}",
         "config.json: rope_scaling has factor, which is not supported"},
        {"{\"rope_scaling\": 2}", "config.json: rope_scaling is not an object"},
        {"{\"rope_parameters\": {\"rope_type\": \"yarn\", \"rope_theta\": 1e4}}",
         "config.json: rope_parameters of type yarn is not supported"},
        {"{\"rope_parameters\": {\"rope_type\": 3}}", "rope_parameters of type (not a string)"},
        {"{\"rope_parameters\": {\"partial_rotary_factor\": 0.5}}",
         "config.json: partial_rotary_factor is 0.5, which is not supported, only 1 is"},
        {"{\"partial_rotary_factor\": 0.5}", "partial_rotary_factor is 0.5"},
        {"{\"rope_theta\": 0}", "config.json: rope_theta is not a number above 0"},
        {"{\"rope_theta\": \"far\"}", "config.json: rope_theta is not a number above 0"},
        {"{\"rope_interleaved\": true}", "config.json: rope_interleaved is not false"},
        {"{\"sliding_window\": 4096}", "config.json: sliding_window is not supported for a Llama"},
        {"{\"num_local_experts\": 8}", "config.json: num_local_experts is not supported"},
        {"{\"logit_scale\": 0.5}", "config.json: logit_scale is not supported"},
        {"{\"final_logit_softcapping\": 30.0}", "final_logit_softcapping is not supported"},
        {"{\"attn_logit_softcapping\": 50.0}", "attn_logit_softcapping is not supported"},
        {"{\"query_pre_attn_scalar\": 8}", "query_pre_attn_scalar is not supported"},
        {"{\"embedding_multiplier\": 12.0}", "embedding_multiplier is not supported"},
        {"{\"quantization_config\": {\"bits\": 4}}", "quantization_config is not supported"},
        {"{\"layer_types\": [\"sliding_attention\", \"full_attention\"]}",
         "layer_types is not supported"},
        {"{\"attention_bias\": true}",
         "the file has no tensor model.layers.0.self_attn.q_proj.bias"},
        {"{\"attention_bias\": 1}", "config.json: attention_bias is neither true nor false"},
        {"{\"mlp_bias\": true}", "the file has no tensor model.layers.0.mlp.gate_proj.bias"},
        {"{\"pretraining_tp\": 2}", "pretraining_tp is 2, which is not supported, only 1 is"},
        {"{\"hidden_act\": \"gelu\"}",
         "hidden_act gelu is not supported for a Llama, only silu is"},
        {"{\"hidden_act\": \"snake\"}", "config.json: hidden_act snake is not known"},
        {"{\"head_dim\": 3}", "config.json: a head of 3 numbers has no pairs"},
        {"{\"head_dim\": 6}", "q_proj.weight has shape [8, 8], expected [12, 8]"},
        {"{\"num_attention_heads\": 3}", "num_attention_heads 3 does not divide hidden_size 8"},
        {"{\"num_key_value_heads\": 3}",
         "num_key_value_heads 3 does not divide num_attention_heads 2"},
        {"{\"num_key_value_heads\": null}", "k_proj.weight has shape [4, 8], expected [8, 8]"},
        {"{\"num_attention_heads\": null}", "config.json has no num_attention_heads"},
        {"{\"num_hidden_layers\": 3}", "no tensor model.layers.2.input_layernorm.weight"},
        {"{\"num_hidden_layers\": 1}",
         "the tensor model.layers.1.input_layernorm.weight is not one"},
        {"{\"vocab_size\": 10}", "embed_tokens.weight has shape [9, 8], expected [10, 8]"},
        {"{\"model_type\": \"mistral\"}", "model_type mistral is not supported"},
        {"{\"rms_norm_eps\": -1}", "rms_norm_eps is not a number between 0 and 1"},
        {"{\"sliding_window\": null, \"use_sliding_window\": false, \"rope_scaling\": null, "
         "\"rope_interleaved\": false, \"attention_bias\": false, \"mlp_bias\": false, "
         "\"pretraining_tp\": 1, \"attention_dropout\": 0.0, \"is_llama_config\": true}",
         NULL},
        {"{\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 1e4}}", NULL},
        {"{\"rope_scaling\": {\"type\": \"default\"}, \"head_dim\": 4}", NULL},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++)
        check_directory(cases[n].fields, "{}", TINY_F32, cases[n].message);
}

static void test_tensors(void **state)
{
    (void)state;
    static const char eight[] = "{\"shape\": [8], \"data\": [1,1,1,1,1,1,1,1]}";
    static const struct {
        const char *name, *message;
    } cases[] = {
        {"model.layers.1.self_attn.q_proj.bias",
         "the tensor model.layers.1.self_attn.q_proj.bias is not one of a Llama of 2 layers"},
        {"model.layers.0.self_attn.q_norm.weight", "the tensor model.layers.0.self_attn.q_norm"},
        {"model.norm.weight", NULL},
        {"score.weight", NULL}, /* another head's */
        {"lm_head.weight", "lm_head.weight has shape [8], expected [9, 8]"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        char tensors[256];
        snprintf(tensors, sizeof tensors, "{\"%s\": %s}", cases[n].name, eight);
        check_directory("{}", tensors, TINY_F32, cases[n].message);
    }
    check_directory("{}", "{}", TINY_F64,
                    "model.safetensors: model.embed_tokens.weight is F64, which is not supported: "
                    "matrices are F32, F16, BF16");
    struct tiny_model tiny = tiny_model_read("tiny_llama");
    const char *name;
    json_t *tensor;
    json_object_foreach (tiny.tensors, name, tensor) {
        char tensors[256], message[256];
        snprintf(tensors, sizeof tensors, "{\"%s\": null}", name);
        snprintf(message, sizeof message, "the file has no tensor %s", name);
        check_directory("{}", tensors, TINY_F32, message);
    }
    tiny_model_free(&tiny);
}

/* A head that is not the table that it should be tied to. */
static void test_a_head_of_its_own(void **state)
{
    (void)state;
    const char *const names[][2] = {{"tiny_llama", "model.embed_tokens.weight"},
                                    {"tiny_gpt2", "wte.weight"}};
    for (int n = 0; n < 2; n++) {
        struct tiny_model tiny = tiny_model_read(names[n][0]);
        json_t *head = json_deep_copy(json_object_get(tiny.tensors, names[n][1]));
        json_array_set_new(json_object_get(head, "data"), 7, json_real(0.5078125));
        json_object_set_new(tiny.tensors, "lm_head.weight", head);
        char *folder = tiny_model_save(&tiny), message[128];
        snprintf(message, sizeof message, "lm_head.weight is not the same as %s", names[n][1]);
        open_path(folder, message);
        scratch_folder_remove(folder);
        tiny_model_free(&tiny);
    }
}

/* A GGUF file of Transformers' model, to be changed. */
static struct attn_buffer read_gguf(const char *name)
{
    size_t size;
    char path[64];
    snprintf(path, sizeof path, "models/causal/%s", name);
    char *bytes = case_file_bytes(path, &size);
    struct attn_buffer file = {0};
    attn_buffer_add(&file, bytes, size);
    assert_false(file.failed);
    free(bytes);
    return file;
}

static char *find(const struct attn_buffer *file, const char *text)
{
    char *found = memmem(file->data, file->size, text, strlen(text));
    assert_non_null(found);
    return found;
}

/* The 32 bits of a key's value. */
static void set_value(struct attn_buffer *file, const char *key, uint32_t value)
{
    memcpy(find(file, key) + strlen(key) + 4, &value, sizeof value);
}

static void rename_to(struct attn_buffer *file, const char *name, const char *other)
{
    assert_int_equal(strlen(name), strlen(other));
    memcpy(find(file, name), other, strlen(other));
}

static void add_text(struct attn_buffer *buffer, const char *text, size_t size)
{
    const uint64_t length = size;
    attn_buffer_add(buffer, &length, sizeof length);
    attn_buffer_add(buffer, text, size);
}

/* A key before all others, and one that fills up what tensors' data need to stay aligned. */
static void add_key(struct attn_buffer *file, const char *key, uint32_t type, const void *value,
                    size_t size)
{
    enum { HEADER = 24, COUNT = 16, ALIGNMENT = 32, TEXT = 8 };
    static const char filler[] = "test.filler", spaces[ALIGNMENT] = "";
    const uint32_t text = TEXT;
    struct attn_buffer longer = {0};
    attn_buffer_add(&longer, file->data, HEADER);
    uint64_t count;
    memcpy(&count, longer.data + COUNT, sizeof count);
    count += 2;
    memcpy(longer.data + COUNT, &count, sizeof count);
    add_text(&longer, key, strlen(key));
    attn_buffer_add(&longer, &type, sizeof type);
    if (type == TEXT)
        add_text(&longer, value, size);
    else
        attn_buffer_add(&longer, value, size);
    add_text(&longer, filler, strlen(filler));
    attn_buffer_add(&longer, &text, sizeof text);
    const size_t end = longer.size + sizeof(uint64_t) - HEADER;
    add_text(&longer, spaces, (ALIGNMENT - end % ALIGNMENT) % ALIGNMENT);
    attn_buffer_add(&longer, file->data + HEADER, file->size - HEADER);
    assert_false(longer.failed);
    attn_buffer_release(file);
    *file = longer;
}

/* Opens the file, and releases it. */
static void check_gguf(struct attn_buffer *file, const char *message)
{
    char *folder = scratch_folder_create();
    char path[256];
    scratch_write(folder, "model.gguf", file->data, file->size);
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    open_path(path, message);
    scratch_folder_remove(folder);
    attn_buffer_release(file);
}

static void test_gguf_values(void **state)
{
    (void)state;
    static const struct {
        const char *name, *key;
        uint32_t value;
        const char *message;
    } cases[] = {
        {"llama_blocks.gguf", "llama.rope.dimension_count", 8,
         "model.gguf: llama.rope.dimension_count is 8, which is not supported, only all 16"},
        {"llama_blocks.gguf", "llama.attention.value_length", 8,
         "llama.attention.value_length is 8, which is not supported, only 16 as keys have is"},
        {"llama_blocks.gguf", "llama.attention.key_length", 8,
         "llama.attention.value_length is 16, which is not supported, only 8"},
        {"llama_blocks.gguf", "llama.attention.head_count_kv", 3,
         "llama.attention.head_count_kv 3 does not divide llama.attention.head_count 4"},
        {"llama_blocks.gguf", "llama.attention.head_count_kv", 0,
         "llama.attention.head_count_kv is 0, expected a whole number in 1.."},
        {"llama_blocks.gguf", "llama.block_count", 3, "no tensor blk.2.attn_norm.weight"},
        {"llama_blocks.gguf", "llama.block_count", 1, "the tensor blk.1."},
        {"llama_blocks.gguf", "llama.vocab_size", 60,
         "token_embd.weight has shape [61, 64], expected [60, 64]"},
        {"llama_blocks.gguf", "llama.rope.freq_base", 0, "llama.rope.freq_base is 0, expected"},
        {"llama_blocks.gguf", "llama.rope.freq_base", 0x7fc00000, "llama.rope.freq_base is nan"},
        {"llama_blocks.gguf", "llama.context_length", 0, "llama.context_length is 0, expected"},
        {"llama_blocks.gguf", "llama.embedding_length", 32, "expected [61, 32]"},
        {"gpt2.gguf", "gpt2.attention.head_count", 5,
         "gpt2.attention.head_count 5 does not divide gpt2.embedding_length 24"},
        {"gpt2.gguf", "gpt2.block_count", 1, "is not one of a GPT-2 of 1 layers"},
        {"gpt2.gguf", "gpt2.context_length", 25,
         "position_embd.weight has shape [24, 24], expected [25, 24]"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        struct attn_buffer file = read_gguf(cases[n].name);
        set_value(&file, cases[n].key, cases[n].value);
        check_gguf(&file, cases[n].message);
    }
}

static void test_gguf_names(void **state)
{
    (void)state;
    static const struct {
        const char *file, *name, *other, *message;
    } cases[] = {
        {"llama_blocks.gguf", "llama.block_count", "lhama.block_count",
         "the file has no llama.block_count"},
        {"llama_blocks.gguf", "llama.attention.layer_norm_rms_epsilon",
         "xlama.attention.layer_norm_rms_epsilon",
         "the file has no llama.attention.layer_norm_rms_epsilon"},
        {"llama_blocks.gguf", "blk.1.ffn_up.weight", "blk.1.ffn_xx.weight",
         "the file has no tensor blk.1.ffn_up.weight"},
        {"llama_bias.gguf", "blk.1.attn_q.bias", "blk.1.attn_x.bias",
         "the file has no tensor blk.1.attn_q.bias"},
        {"llama_bias.gguf", "blk.0.attn_q.bias", "blk.0.attn_x.bias",
         "the tensor blk.0.attn_x.bias is not one of a Llama"},
        {"llama_bias.gguf", "output_norm.weight", "outpux_norm.weight",
         "the file has no tensor output_norm.weight"},
        {"gpt2.gguf", "blk.1.attn_qkv.bias", "blk.1.attn_qkv.bios",
         "the file has no tensor blk.1.attn_qkv.bias"},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        struct attn_buffer file = read_gguf(cases[n].file);
        rename_to(&file, cases[n].name, cases[n].other);
        check_gguf(&file, cases[n].message);
    }
}

static void test_gguf_keys(void **state)
{
    (void)state;
    enum { U32 = 4, F32 = 6, BOOL = 7, TEXT = 8 };
    static const struct {
        const char *key;
        uint32_t type;
        double number;
        const char *text, *message;
    } cases[] = {
        {"llama.rope.scaling.type", TEXT, 0, "linear",
         "llama.rope.scaling.type is linear, which is not supported, only none is"},
        {"llama.rope.scaling.type", TEXT, 0, "none", NULL},
        {"llama.rope.scaling.factor", F32, 2, NULL,
         "llama.rope.scaling.factor is 2, which is not supported, only 1 is"},
        {"llama.rope.scaling.factor", F32, 1, NULL, NULL},
        {"llama.rope.scale_linear", F32, 4, NULL, "llama.rope.scale_linear is 4"},
        {"llama.rope.scaling.yarn_beta_fast", F32, 32, NULL,
         "llama.rope.scaling.yarn_beta_fast is not supported"},
        {"llama.attention.sliding_window", U32, 4096, NULL,
         "llama.attention.sliding_window is 4096, which is not supported, only 0 is"},
        {"llama.expert_count", U32, 8, NULL, "llama.expert_count is 8, which is not supported"},
        {"llama.expert_count", U32, 0, NULL, NULL},
        {"llama.logit_scale", F32, 0.5, NULL, "llama.logit_scale is 0.5"},
        {"llama.final_logit_softcapping", F32, 30, NULL, "llama.final_logit_softcapping is 30"},
        {"llama.attn_logit_softcapping", F32, 50, NULL, "llama.attn_logit_softcapping is 50"},
        {"llama.attention.clamp_kqv", F32, 8, NULL, "llama.attention.clamp_kqv is 8"},
        {"llama.attention.causal", BOOL, 0, NULL,
         "llama.attention.causal is 0, which is not supported, only 1 is"},
        {"llama.attention.causal", BOOL, 1, NULL, NULL},
        {"llama.some_new_thing", U32, 1, NULL, "llama.some_new_thing is not supported"},
        {"llama.tensor_data_layout", TEXT, 0, "reference",
         "llama.tensor_data_layout is reference, which is not supported"},
        {"general.type", TEXT, 0, "adapter", "general.type is adapter, which is not supported"},
        {"other.namespace", U32, 1, NULL, NULL},
    };
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        struct attn_buffer file = read_gguf("llama_blocks.gguf");
        const uint32_t whole = (uint32_t)cases[n].number;
        const float number = (float)cases[n].number;
        const unsigned char on = cases[n].number != 0;
        const void *value = cases[n].type == U32    ? (const void *)&whole
                            : cases[n].type == F32  ? (const void *)&number
                            : cases[n].type == BOOL ? (const void *)&on
                                                    : (const void *)cases[n].text;
        const size_t size = cases[n].type == TEXT   ? strlen(cases[n].text)
                            : cases[n].type == BOOL ? sizeof on
                                                    : sizeof whole;
        add_key(&file, cases[n].key, cases[n].type, value, size);
        check_gguf(&file, cases[n].message);
    }
}

static void test_a_bert(void **state)
{
    (void)state;
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    char *folder = tiny_model_save(&tiny);
    open_path(folder, "is a BERT, which reads words from both sides: only GPT-2 and Llama");
    scratch_folder_remove(folder);
    tiny_model_free(&tiny);
}

/* Settings alone are those of the model, but for the bytes, which only the weights tell. */
static void test_settings(void **state)
{
    (void)state;
    for (int n = 0; causal_golden_names[n]; n++) {
        struct causal_golden golden = causal_golden_open(causal_golden_names[n]);
        struct causal_settings settings, opened = *causal_model_get_settings(golden.scene.model);
        struct attn_error error;
        assert_true(causal_model_read_settings(&settings, golden.scene.source, &error));
        assert_int_equal(settings.parameters, opened.parameters);
        assert_int_equal(settings.head_size, opened.head_size);
        assert_int_equal(settings.context, opened.context);
        assert_int_equal(settings.weight_bytes, 0);
        if (strcmp(causal_golden_names[n], "llama_f32") == 0 ||
            strcmp(causal_golden_names[n], "gpt2_f32") == 0)
            assert_int_equal(opened.weight_bytes, 4 * opened.parameters);
        if (strcmp(causal_golden_names[n], "gpt2_f16") == 0)
            assert_int_equal(opened.weight_bytes, 2 * opened.parameters);
        causal_golden_close(&golden);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_a_head_of_its_own),
        cmocka_unit_test(test_gguf_values),
        cmocka_unit_test(test_gguf_names),
        cmocka_unit_test(test_gguf_keys),
        cmocka_unit_test(test_a_bert),
        cmocka_unit_test(test_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
