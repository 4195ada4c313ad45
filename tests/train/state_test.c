#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "base/file.h"
#include "cmocka_test.h"
#include "scratch_folder.h"
#include "step_parameters.h"
#include "train/state.h"

/* A small training with numbers everywhere. */
struct fixture {
    char *folder;
    struct training_state state;
    struct parameters parameters;
    struct optimizer optimizer;
};

static void make_parameters(struct parameters *parameters)
{
    *parameters = (struct parameters){0};
    add_tensor(parameters, "h.0.weight", 3, 5);
    add_tensor(parameters, "h.0.bias", 7, 0);
    allocate_parameters(parameters);
}

static int begin(void **user)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct attn_error error;
    fixture->folder = scratch_folder_create();
    train_settings_init(&fixture->state.settings);
    train_settings_complete(&fixture->state.settings);
    fixture->state.settings.schedule.peak = 1.0 / 3.0;
    fixture->state.step = 17;
    fixture->state.tokens = 123456789012;
    fixture->state.corpus_checksum = 0xfedcba9876543210;
    fixture->state.corpus_size = 4404412;
    make_parameters(&fixture->parameters);
    fill_parameters(&fixture->parameters);
    assert_true(optimizer_create(&fixture->optimizer, &fixture->parameters,
                                 &fixture->state.settings.optimizer, &error));
    for (int64_t n = 0; n < fixture->parameters.count; n++) {
        fixture->optimizer.first[n] = 0.1f * (float)n;
        fixture->optimizer.second[n] = 0.01f * (float)n;
    }
    *user = fixture;
    return 0;
}

static int end(void **user)
{
    struct fixture *fixture = *user;
    optimizer_destroy(&fixture->optimizer);
    parameters_release(&fixture->parameters);
    scratch_folder_remove(fixture->folder);
    free(fixture);
    return 0;
}

static void write_state(const struct fixture *fixture)
{
    struct attn_error error;
    if (!training_state_write(&fixture->state, fixture->folder, &fixture->parameters,
                              &fixture->optimizer, &error))
        fail_msg("%s", error.message);
}

/* Into parameters and optimizer of their own, which the caller releases where it succeeds. */
static bool read_state(const char *folder, struct training_state *state,
                       struct parameters *parameters, struct optimizer *optimizer,
                       struct attn_error *error)
{
    struct training_file *file;
    if (!training_file_open(&file, folder, state, error))
        return false;
    bool created = optimizer_create(optimizer, parameters, &state->settings.optimizer, error);
    bool done = created && training_file_load(file, state, parameters, optimizer, error);
    if (created && !done)
        optimizer_destroy(optimizer);
    training_file_close(file);
    return done;
}

static void assert_same_numbers(const struct parameters *parameters, const float *found,
                                const float *expected)
{
    for (size_t i = 0; i < parameters->item_count; i++) {
        const struct parameter *item = &parameters->items[i];
        assert_memory_equal(found + item->begin, expected + item->begin,
                            (size_t)item->count * sizeof(float));
    }
}

static void test_round_trip(void **user)
{
    const struct fixture *fixture = *user;
    struct training_state state;
    struct parameters parameters;
    struct optimizer optimizer;
    struct attn_error error;
    write_state(fixture);
    make_parameters(&parameters);
    if (!read_state(fixture->folder, &state, &parameters, &optimizer, &error))
        fail_msg("%s", error.message);
    assert_int_equal(state.step, 17);
    assert_int_equal(optimizer.steps, 17);
    assert_true(state.tokens == 123456789012 && state.corpus_size == 4404412);
    assert_true(state.corpus_checksum == 0xfedcba9876543210);
    assert_true(state.settings.schedule.peak == 1.0 / 3.0);
    assert_same_numbers(&parameters, parameters.values, fixture->parameters.values);
    assert_same_numbers(&parameters, optimizer.first, fixture->optimizer.first);
    assert_same_numbers(&parameters, optimizer.second, fixture->optimizer.second);
    optimizer_destroy(&optimizer);
    parameters_release(&parameters);
}

/* Each byte of the file, damaged: never read as something else. A few bytes are free to differ:
 * spaces, and names of metadata that nobody asks for. */
static void test_damage(void **user)
{
    const struct fixture *fixture = *user;
    struct attn_error error;
    char *bytes;
    size_t size;
    write_state(fixture);
    char *path = attn_path_join(fixture->folder, "training.safetensors");
    assert_true(attn_file_read(path, 1 << 20, &bytes, &size, &error));
    struct parameters parameters;
    make_parameters(&parameters);
    int unnoticed = 0;
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit += 7) {
            struct training_state state;
            struct optimizer optimizer;
            bytes[i] = (char)(bytes[i] ^ (1 << bit));
            scratch_write(fixture->folder, "training.safetensors", bytes, size);
            bytes[i] = (char)(bytes[i] ^ (1 << bit));
            if (!read_state(fixture->folder, &state, &parameters, &optimizer, &error)) {
                assert_message(&error, "training.safetensors");
                continue;
            }
            unnoticed++;
            assert_int_equal(state.step, 17);
            assert_true(state.tokens == 123456789012);
            assert_same_numbers(&parameters, parameters.values, fixture->parameters.values);
            optimizer_destroy(&optimizer);
        }
    assert_true(unnoticed < 64);
    /* And every shorter file. */
    for (size_t cut = 0; cut < size; cut += 13) {
        struct training_state state;
        struct optimizer optimizer;
        scratch_write(fixture->folder, "training.safetensors", bytes, cut);
        assert_false(read_state(fixture->folder, &state, &parameters, &optimizer, &error));
    }
    parameters_release(&parameters);
    free(bytes);
    free(path);
}

static void test_a_file_of_another_model(void **user)
{
    const struct fixture *fixture = *user;
    struct attn_error error = {""};
    write_state(fixture);
    const struct {
        const char *name;
        int64_t rows, columns, more;
        const char *message;
    } others[] = {
        {"h.0.weight", 5, 3, 0, "tensor weights/h.0.weight"},
        {"h.0.weights", 3, 5, 0, "tensor weights/h.0.weights"},
        {"h.0.weight", 3, 5, 1, "tensor weights/more"},
        {"h.0.weight", 15, 0, 0, "tensor weights/h.0.weight"},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct training_state state;
        struct parameters parameters = {0};
        struct optimizer optimizer;
        add_tensor(&parameters, others[i].name, others[i].rows, others[i].columns);
        add_tensor(&parameters, "h.0.bias", 7, 0);
        if (others[i].more)
            add_tensor(&parameters, "more", 1, 0);
        allocate_parameters(&parameters);
        assert_false(read_state(fixture->folder, &state, &parameters, &optimizer, &error));
        assert_message(&error, others[i].message);
        parameters_release(&parameters);
    }
    /* Fewer tensors than the file has. */
    struct training_state state;
    struct parameters parameters = {0};
    struct optimizer optimizer;
    add_tensor(&parameters, "h.0.weight", 3, 5);
    allocate_parameters(&parameters);
    assert_false(read_state(fixture->folder, &state, &parameters, &optimizer, &error));
    assert_message(&error, "has tensors");
    parameters_release(&parameters);
}

static void test_no_training_at_all(void **user)
{
    const struct fixture *fixture = *user;
    struct training_state state;
    struct training_file *file;
    struct attn_error error = {""};
    assert_false(training_file_open(&file, fixture->folder, &state, &error));
    assert_message(&error, "no such file");
    /* A model's file is a safetensors file too. */
    static const char model[] =
        "\x3a\0\0\0\0\0\0\0"
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}   "
        "      \0\0\0\0";
    scratch_write(fixture->folder, "training.safetensors", model, 8 + 0x3a + 4);
    assert_false(training_file_open(&file, fixture->folder, &state, &error));
    assert_message(&error, "training.safetensors: ");
}

static bool write_again(void *user, struct attn_error *error)
{
    const struct fixture *fixture = user;
    return training_state_write(&fixture->state, fixture->folder, &fixture->parameters,
                                &fixture->optimizer, error);
}

static bool read_again(void *user, struct attn_error *error)
{
    const struct fixture *fixture = user;
    struct training_state state;
    struct parameters parameters = fixture->parameters;
    struct optimizer optimizer;
    bool done = read_state(fixture->folder, &state, &parameters, &optimizer, error);
    if (done)
        optimizer_destroy(&optimizer);
    return done;
}

void *__real_malloc(size_t size);

static void test_failing_allocations(void **user)
{
    struct fixture *fixture = *user;
    json_set_alloc_funcs(__real_malloc, free);
    assert_true(allocation_sweep(write_again, fixture) > 5);
    assert_true(allocation_sweep(read_again, fixture) > 5);
    assert_int_equal(scratch_count(fixture->folder), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, begin, end),
        cmocka_unit_test_setup_teardown(test_damage, begin, end),
        cmocka_unit_test_setup_teardown(test_a_file_of_another_model, begin, end),
        cmocka_unit_test_setup_teardown(test_no_training_at_all, begin, end),
        cmocka_unit_test_setup_teardown(test_failing_allocations, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
