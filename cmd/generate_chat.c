#include "generate_chat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output.h"

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    is_interrupted = 1;
}

struct conversation {
    struct generator *generator;
    struct chat_tokens tokens; /* of all turns */
    int64_t answers;
    bool is_full;
};

static bool keep_answer(struct conversation *conversation, const struct written *written,
                        struct attn_error *error)
{
    struct chat_tokens *tokens = &conversation->tokens;
    /* The end token that the model chose is in no text: the template writes its own. */
    return chat_tokens_add(tokens, written->ids, written->count, error) &&
           chat_template_end(conversation->generator->chat,
                             conversation->generator->session.tokenizer, tokens, error);
}

/* The model's turn, behind all that stands in the conversation. */
static bool answer(struct conversation *conversation, struct attn_error *error)
{
    struct generator *generator = conversation->generator;
    const struct generation_settings settings =
        generator_settings(generator, conversation->answers++);
    const struct prompt prompt = {conversation->tokens.ids, (int64_t)conversation->tokens.count,
                                  causal_session_length(generator->texts, 0)};

    struct written written = {0};
    struct writing writing = {.texts = &written, .shown = true, .is_interrupted = &is_interrupted};
    /* The second of an answer ends the tool: between two tokens, or in a long reading, nobody looks
     * at the first. */
    const struct sigaction ours = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;
    is_interrupted = 0;
    (void)sigaction(SIGINT, &ours, &before);
    bool done = writing_run(&writing, generator, &settings, &prompt, 1, NULL, error);
    (void)sigaction(SIGINT, &before, NULL);
    done = done && output_write_text("\n", error) && keep_answer(conversation, &written, error);
    conversation->is_full |= written.end == GENERATION_CONTEXT;
    written_release(&written);
    return done;
}

/* A user's turn and its answer. What cannot be a turn is told and left out. */
static bool take_turn(struct conversation *conversation, const struct text *text, const char *name,
                      struct attn_error *error)
{
    struct attn_error fault;
    if (!input_check_utf8(name, text->data, text->size, &fault)) {
        fprintf(stderr, "attn generate: %s; it was left out\n", fault.message);
        return true;
    }
    if (!generator_encode_turn(conversation->generator, text, name, &conversation->tokens, error))
        return false;
    conversation->is_full =
        (int64_t)conversation->tokens.count > conversation->generator->positions;
    return conversation->is_full || answer(conversation, error);
}

/* A line of standard input without its end; at the end of all, `at_end`. */
static bool read_line(char **line, size_t *capacity, struct text *text, bool *at_end,
                      struct attn_error *error)
{
    *at_end = false;
    const bool is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (is_terminal && !output_write_text("> ", error))
        return false;
    errno = 0;
    ssize_t size = getline(line, capacity, stdin);
    if (size < 0) {
        *at_end = true;
        if (!feof(stdin))
            return attn_error_set(error, "standard input cannot be read: %s", strerror(errno));
        return !is_terminal || output_write_text("\n", error);
    }
    while (size > 0 && ((*line)[size - 1] == '\n' || (*line)[size - 1] == '\r'))
        size--;
    *text = (struct text){*line, (size_t)size};
    return true;
}

static bool converse(struct conversation *conversation, struct attn_error *error)
{
    char *line = NULL;
    size_t capacity = 0, number = 0;
    struct text text;
    bool done = true, at_end = false;
    while (done && !conversation->is_full && !at_end) {
        char name[64];
        snprintf(name, sizeof name, "standard input: line %zu", ++number);
        done = read_line(&line, &capacity, &text, &at_end, error);
        if (done && !at_end && text.size > 0)
            done = take_turn(conversation, &text, name, error);
    }
    free(line);
    if (conversation->is_full)
        fprintf(stderr,
                "attn generate: the context of %lld tokens is full; the conversation ends here\n",
                (long long)conversation->generator->positions);
    return done;
}

bool generate_chat_run(struct generator *generator, const struct text *first, const char *name,
                       struct attn_error *error)
{
    struct conversation conversation = {.generator = generator};
    int64_t granted;
    bool done = generator_start(generator, 1, generator->positions, &granted, error);
    if (done)
        generator_tell_seed(generator);
    done = done && (!first || first->size == 0 || take_turn(&conversation, first, name, error)) &&
           converse(&conversation, error);
    chat_tokens_release(&conversation.tokens);
    return done;
}
