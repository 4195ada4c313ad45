#include "text/chat_template.h"

#include <stdlib.h>
#include <string.h>

#include "text/array.h"
#include "text/jinja_run.h"

#define TURN_BEGIN "<|im_start|>"
#define TURN_END   "<|im_end|>"

static const char *const role_names[] = {"system", "user", "assistant"};
static const char *const turn_begin = TURN_BEGIN, *const turn_end = TURN_END;

struct chat_template {
    char *system; /* the text where a conversation has none; NULL: there is no such turn then */
    size_t system_size;
};

/* Conversations, ending as one does before an answer. White space shows where a template trims. */
enum { PROBE_LIMIT = 5 };
struct probe {
    size_t count;
    struct jinja_message messages[PROBE_LIMIT];
};
static const struct probe probes[] = {
    {1, {{"user", "  What's 7?\n"}}},
    {1, {{"user", ""}}},
    {3, {{"user", " a"}, {"assistant", "\n b \n"}, {"user", "c "}}},
    {2, {{"system", "\tBe brief.\n\n"}, {"user", "Why?"}}},
    {2, {{"system", ""}, {"user", "system"}}},
    {4, {{"system", " s "}, {"user", " u "}, {"assistant", " v "}, {"user", "\nw\n"}}},
    {5, {{"user", "1"}, {"assistant", ""}, {"user", "3"}, {"assistant", " 4\t"}, {"user", "5"}}},
};

/* The turns as ChatML writes them, and the begin of an answer. */
static void write_turns(const struct probe *probe, struct attn_buffer *out)
{
    for (size_t i = 0; i < probe->count; i++)
        attn_buffer_format(out, TURN_BEGIN "%s\n%s" TURN_END "\n", probe->messages[i].role,
                           probe->messages[i].content);
    attn_buffer_add_text(out, TURN_BEGIN "assistant\n");
}

static bool is_system(const struct jinja_message *message)
{
    return strcmp(message->role, role_names[CHAT_SYSTEM]) == 0;
}

/* What ChatML writes with the template's own system text. */
static void write_expected(const struct chat_template *chat, const struct probe *probe,
                           struct attn_buffer *out)
{
    if (chat->system && !is_system(&probe->messages[0]))
        attn_buffer_format(out, TURN_BEGIN "system\n%s" TURN_END "\n", chat->system);
    write_turns(probe, out);
}

/* Takes the system text from written[0..size), what the template writes before the first turn.
 * Where it is none, none is taken: what is expected then differs from what is written. */
static bool take_system(struct chat_template *chat, const char *written, size_t size,
                        struct attn_error *error)
{
    static const char begin[] = TURN_BEGIN "system\n", end[] = TURN_END "\n";
    size_t before = sizeof begin - 1, behind = sizeof end - 1;
    if (size < before + behind || memcmp(written, begin, before) != 0 ||
        memcmp(written + size - behind, end, behind) != 0)
        return true;
    chat->system_size = size - before - behind;
    chat->system = malloc(chat->system_size + 1);
    if (!chat->system)
        return attn_error_memory(error);
    memcpy(chat->system, written + before, chat->system_size);
    chat->system[chat->system_size] = '\0';
    return true;
}

static bool read_system(struct chat_template *chat, const char *source, size_t size,
                        struct attn_error *error)
{
    struct attn_buffer written = {0}, turns = {0};
    bool done = jinja_run(source, size, probes[0].messages, probes[0].count, true, &written, error);
    write_turns(&probes[0], &turns);
    if (done && turns.failed)
        done = attn_error_memory(error);
    if (done && written.size > turns.size)
        done = take_system(chat, written.data, written.size - turns.size, error);
    attn_buffer_release(&written);
    attn_buffer_release(&turns);
    return done;
}

/* Shows both from where they begin to differ. */
static bool refuse_writing(const struct attn_buffer *written, const struct attn_buffer *expected,
                           struct attn_error *error)
{
    enum { SHOWN = 32 };
    const char *text = written->data ? written->data : "";
    size_t at = 0;
    while (at < written->size && at < expected->size && text[at] == expected->data[at])
        at++;
    while (at > 0 && ((unsigned char)expected->data[at] & 0xC0) == 0x80)
        at--;
    return attn_error_set(error, "it writes \"%.*s\" where ChatML has \"%.*s\"", SHOWN, text + at,
                          SHOWN, expected->data + at);
}

static bool check_probe(const struct chat_template *chat, const char *source, size_t size,
                        const struct probe *probe, struct attn_error *error)
{
    struct attn_buffer written = {0}, expected = {0};
    bool done = jinja_run(source, size, probe->messages, probe->count, true, &written, error);
    write_expected(chat, probe, &expected);
    if (done && expected.failed)
        done = attn_error_memory(error);
    if (done &&
        (written.size != expected.size || memcmp(written.data, expected.data, written.size) != 0))
        done = refuse_writing(&written, &expected, error);
    attn_buffer_release(&written);
    attn_buffer_release(&expected);
    return done;
}

static bool recognise(struct chat_template *chat, const char *source, size_t size,
                      struct attn_error *error)
{
    if (!read_system(chat, source, size, error))
        return false;
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++)
        if (!check_probe(chat, source, size, &probes[i], error))
            return false;
    return true;
}

bool chat_template_open(struct chat_template **chat, const char *source, size_t size,
                        struct attn_error *error)
{
    struct attn_error reason = {""};
    *chat = NULL;
    struct chat_template *opened = calloc(1, sizeof *opened);
    if (!opened)
        return attn_error_memory(error);
    if (!recognise(opened, source, size, &reason)) {
        struct attn_error memory;
        attn_error_memory(&memory);
        chat_template_close(opened);
        if (strcmp(reason.message, memory.message) == 0)
            return attn_error_memory(error);
        return attn_error_set(error, "the chat template is not known (%s): only ChatML is",
                              reason.message);
    }
    *chat = opened;
    return true;
}

void chat_template_close(struct chat_template *chat)
{
    if (!chat)
        return;
    free(chat->system);
    free(chat);
}

void chat_tokens_release(struct chat_tokens *tokens)
{
    free(tokens->ids);
    memset(tokens, 0, sizeof *tokens);
}

bool chat_tokens_add(struct chat_tokens *tokens, const int32_t *ids, size_t count,
                     struct attn_error *error)
{
    for (size_t i = 0; i < count; i++) {
        int32_t *grown = array_grow(tokens->ids, tokens->count, &tokens->capacity, sizeof *grown);
        if (!grown)
            return attn_error_memory(error);
        tokens->ids = grown;
        tokens->ids[tokens->count++] = ids[i];
    }
    return true;
}

static bool push_marker(const struct tokenizer *tokenizer, const char *spelling,
                        struct chat_tokens *tokens, struct attn_error *error)
{
    int32_t id = tokenizer_special(tokenizer, spelling);
    if (id < 0)
        return attn_error_set(
            error, "the vocabulary has no token %s, which the chat template needs", spelling);
    return chat_tokens_add(tokens, &id, 1, error);
}

/* The tokens of a text, without those that the tokenizer puts around every text. */
static bool push_text(const struct tokenizer *tokenizer, const char *text, size_t size,
                      struct chat_tokens *tokens, struct attn_error *error)
{
    const struct tokenizer_input input = {
        .text = text, .text_size = size, .specials = SPECIAL_PLAIN};
    struct encoding encoding;
    if (!tokenizer_encode(tokenizer, &input, &encoding, error))
        return false;
    bool done = true;
    for (size_t i = 0; i < encoding.token_count && done; i++)
        if (encoding.tokens[i].word != TOKEN_NO_WORD)
            done = chat_tokens_add(tokens, &encoding.tokens[i].id, 1, error);
    encoding_release(&encoding);
    return done;
}

/* The role, and behind it the text: one stretch, as a tokenizer sees it between two markers. */
static bool push_said(const struct tokenizer *tokenizer, enum chat_role role, const char *text,
                      size_t size, struct chat_tokens *tokens, struct attn_error *error)
{
    struct attn_buffer said = {0};
    attn_buffer_format(&said, "%s\n", role_names[role]);
    attn_buffer_add(&said, text, size);
    bool done = !said.failed || attn_error_memory(error);
    done = done && push_text(tokenizer, said.data, said.size, tokens, error);
    attn_buffer_release(&said);
    return done;
}

static bool push_turn(const struct tokenizer *tokenizer, enum chat_role role, const char *text,
                      size_t size, struct chat_tokens *tokens, struct attn_error *error)
{
    return push_marker(tokenizer, turn_begin, tokens, error) &&
           push_said(tokenizer, role, text, size, tokens, error) &&
           push_marker(tokenizer, turn_end, tokens, error) &&
           push_text(tokenizer, "\n", 1, tokens, error);
}

/* What was added before a failure is taken away. */
static bool finish(struct chat_tokens *tokens, size_t count, bool done)
{
    if (!done)
        tokens->count = count;
    return done;
}

bool chat_template_add(const struct chat_template *chat, const struct tokenizer *tokenizer,
                       enum chat_role role, const char *text, size_t size,
                       struct chat_tokens *tokens, struct attn_error *error)
{
    size_t count = tokens->count;
    bool done = count > 0 || role == CHAT_SYSTEM || !chat->system ||
                push_turn(tokenizer, CHAT_SYSTEM, chat->system, chat->system_size, tokens, error);
    return finish(tokens, count, done && push_turn(tokenizer, role, text, size, tokens, error));
}

bool chat_template_ask(const struct chat_template *chat, const struct tokenizer *tokenizer,
                       struct chat_tokens *tokens, struct attn_error *error)
{
    (void)chat;
    size_t count = tokens->count;
    return finish(tokens, count,
                  push_marker(tokenizer, turn_begin, tokens, error) &&
                      push_said(tokenizer, CHAT_ASSISTANT, "", 0, tokens, error));
}

bool chat_template_end(const struct chat_template *chat, const struct tokenizer *tokenizer,
                       struct chat_tokens *tokens, struct attn_error *error)
{
    (void)chat;
    size_t count = tokens->count;
    return finish(tokens, count,
                  push_marker(tokenizer, turn_end, tokens, error) &&
                      push_text(tokenizer, "\n", 1, tokens, error));
}

int32_t chat_template_end_id(const struct chat_template *chat, const struct tokenizer *tokenizer)
{
    (void)chat;
    return tokenizer_special(tokenizer, turn_end);
}
