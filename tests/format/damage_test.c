/* A valid file cut at every byte and damaged at every byte: it is refused with a message or opens
 * to tensors that can be read. The sanitizers watch what is read. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cmocka_test.h"
#include "format/safetensors.h"
#include "model_file.h"
#include "scratch_folder.h"

static char *folder;
static char *path;
static int file_to_damage; /* open for writing at `path` */
static unsigned char *valid;
static size_t valid_size;
static size_t header_end;

/* With names, types, a tensor without elements and metadata: scripts/golden_safetensors.py. */
static int read_valid(void **state)
{
    (void)state;
    struct attn_error error;
    char *golden = test_data_path("golden/types.safetensors");
    char *text;
    if (!attn_file_read(golden, SIZE_MAX, &text, &valid_size, &error))
        return -1;
    free(golden);
    valid = (unsigned char *)text;
    header_end = 8 + valid[0] + 256U * valid[1];
    folder = scratch_folder_create();
    path = attn_path_join(folder, "damaged.safetensors");
    file_to_damage = open(path, O_WRONLY | O_CREAT, 0600);
    return file_to_damage >= 0 && header_end < valid_size ? 0 : -1;
}

static int release_valid(void **state)
{
    (void)state;
    close(file_to_damage);
    free(valid);
    free(path);
    scratch_folder_remove(folder);
    return 0;
}

static int write_valid(void **state)
{
    (void)state;
    return pwrite(file_to_damage, valid, valid_size, 0) == (ssize_t)valid_size ? 0 : -1;
}

static void put_byte(size_t place, unsigned char byte)
{
    assert_int_equal(pwrite(file_to_damage, &byte, 1, (off_t)place), 1);
}

/* Whether the file opens. Reads all that it then offers. */
static bool file_opens(void)
{
    struct attn_error error = {""};
    struct safetensors *file;
    if (!safetensors_open(&file, path, &error)) {
        assert_null(file);
        assert_message(&error, path);
        return false;
    }
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct stored_tensor *tensor = safetensors_at(file, i);
        assert_ptr_equal(safetensors_find(file, tensor->name), tensor);
        unsigned char *bytes = malloc(tensor->size + 1);
        float *floats = malloc(((size_t)tensor->elements + 1) * sizeof *floats);
        assert_true(bytes && floats);
        memcpy(bytes, tensor->data, tensor->size);
        stored_tensor_to_floats(tensor, floats, &error);
        free(floats);
        free(bytes);
    }
    safetensors_close(file);
    return true;
}

static void the_file_itself_opens(void **state)
{
    (void)state;
    assert_true(file_opens());
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    for (size_t size = valid_size; size-- > 0;) {
        assert_int_equal(ftruncate(file_to_damage, (off_t)size), 0);
        assert_false(file_opens());
    }
}

static void every_damaged_header_byte_is_survived(void **state)
{
    (void)state;
    size_t refused = 0;
    for (size_t i = 0; i < header_end; i++) {
        for (unsigned flip = 1; flip < 256; flip *= 2) {
            put_byte(i, (unsigned char)(valid[i] ^ flip));
            refused += !file_opens();
        }
        put_byte(i, valid[i]);
    }
    assert_true(refused > header_end);
    assert_true(file_opens());
}

static void every_changed_digit_is_survived(void **state)
{
    (void)state;
    for (size_t i = 8; i < header_end; i++) {
        if (valid[i] < '0' || valid[i] > '9')
            continue;
        for (const char *other = "-.e0123456789"; *other; other++) {
            put_byte(i, (unsigned char)*other);
            file_opens();
        }
        put_byte(i, valid[i]);
    }
    assert_true(file_opens());
}

#define TEST(name) cmocka_unit_test_setup(name, write_valid)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_file_itself_opens),
        TEST(every_truncation_is_refused),
        TEST(every_damaged_header_byte_is_survived),
        TEST(every_changed_digit_is_survived),
    };
    return cmocka_run_group_tests(tests, read_valid, release_valid);
}
