#include "fuzz_target.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum { MAX_NAMES = 16, MAX_PATH = 4096, MAX_TEXT = 1000 };

static char folder[MAX_PATH];
static char written[MAX_NAMES][MAX_PATH];
static size_t written_count;

static void remove_folder(void)
{
    for (size_t i = 0; i < written_count; i++)
        unlink(written[i]);
    rmdir(folder);
}

const char *fuzz_folder(void)
{
    if (!folder[0]) {
        const char *parent = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/attn-fuzz-XXXXXX", parent ? parent : "/tmp");
        REQUIRE(mkdtemp(folder));
        REQUIRE(atexit(remove_folder) == 0);
    }
    return folder;
}

static const char *path_of(const char *name)
{
    char *path = attn_path_join(fuzz_folder(), name);
    REQUIRE(path && strlen(path) < MAX_PATH);
    size_t i = 0;
    while (i < written_count && strcmp(written[i], path) != 0)
        i++;
    if (i == written_count) {
        REQUIRE(written_count < MAX_NAMES);
        strcpy(written[written_count++], path);
    }
    free(path);
    return written[i];
}

const char *fuzz_write(const char *name, const uint8_t *data, size_t size)
{
    const char *path = path_of(name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    REQUIRE(file >= 0);
    REQUIRE(size == 0 || write(file, data, size) == (ssize_t)size);
    close(file);
    return path;
}

void fuzz_write_parts(const char *const *names, size_t count, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        if (!data) {
            unlink(path_of(names[i]));
            continue;
        }
        const uint8_t *end = size > 0 && i + 1 < count ? memchr(data, 0, size) : NULL;
        size_t part = end ? (size_t)(end - data) : size;
        fuzz_write(names[i], data, part);
        data = end ? end + 1 : NULL;
        size -= end ? part + 1 : part;
    }
}

static void use_text(const struct tokenizer *tokenizer, const char *text, size_t size)
{
    struct attn_error error;
    struct encoding encoding;
    const struct tokenizer_input input = {text, size, "pair", 4, SPECIAL_READ};
    if (!tokenizer_encode(tokenizer, &input, &encoding, &error))
        return;
    struct attn_buffer decoded = {0};
    for (size_t i = 0; i < encoding.token_count; i++) {
        const struct token *token = &encoding.tokens[i];
        REQUIRE(token->id >= 0 && token->id < tokenizer_size(tokenizer));
        REQUIRE(tokenizer_piece(tokenizer, token->id));
        REQUIRE(token->begin <= token->end);
        REQUIRE(token->text != 0 || token->end <= size);
        REQUIRE(tokenizer_decode(tokenizer, &token->id, 1, &decoded, &error));
    }
    attn_buffer_release(&decoded);
    encoding_release(&encoding);
}

void fuzz_use_tokenizer(const struct tokenizer *tokenizer, const uint8_t *text, size_t size)
{
    static const char fixed[] = "The na\xC3\xAFve robot [MASK]<|im_end|>'s 1937 \xF0\x9F\x98\x80\n";
    use_text(tokenizer, fixed, sizeof fixed - 1);
    use_text(tokenizer, (const char *)text, size < MAX_TEXT ? size : MAX_TEXT);
    struct attn_error error;
    struct attn_buffer decoded = {0};
    for (int32_t id = -1; id <= tokenizer_size(tokenizer) && id < 300; id++)
        REQUIRE(tokenizer_decode(tokenizer, &id, 1, &decoded, &error) ==
                (tokenizer_piece(tokenizer, id) != NULL));
    attn_buffer_release(&decoded);
}
