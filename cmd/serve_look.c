#include "serve_look.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "look_map.h"
#include "look_measures.h"
#include "look_page.h"

struct question {
    struct text texts[2];
    enum look_measure measure;
};

static bool take_text(const json_t *value, const char *name, struct text *text,
                      struct attn_error *error)
{
    if (!json_is_string(value))
        return attn_error_set(error, "\"%s\" must be a string", name);
    *text = (struct text){json_string_value(value), json_string_length(value)};
    return true;
}

static bool take_measure(const json_t *value, enum look_measure *measure, struct attn_error *error)
{
    const char *name = json_string_value(value);
    if (!name || strlen(name) != json_string_length(value))
        return attn_error_set(error, "\"measure\" must be a string without NUL");
    return look_measure_find(name, measure, error);
}

/* Texts point into the object. */
static bool read_question(const json_t *object, struct question *question, struct attn_error *error)
{
    const char *key;
    json_t *value;
    *question = (struct question){.measure = LOOK_WEIGHTS};
    if (!json_is_object(object))
        return attn_error_set(error, "a JSON object with \"text\" is expected");
    /* jansson's loop wants an object that is not const. */
    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        bool taken;
        if (strcmp(key, "text") == 0)
            taken = take_text(value, key, &question->texts[0], error);
        else if (strcmp(key, "pair") == 0)
            taken = json_is_null(value) || take_text(value, key, &question->texts[1], error);
        else if (strcmp(key, "measure") == 0)
            taken = take_measure(value, &question->measure, error);
        else
            taken = attn_error_set(error, "there is no \"%s\" in a question", key);
        if (!taken)
            return false;
    }
    return question->texts[0].data ||
           attn_error_set(error, "a JSON object with \"text\" is expected");
}

/* From a look to JSON. */
static bool tell(const struct session *session, const struct question *question,
                 const struct encoding *encoding, const struct look_settings *settings,
                 const struct look *look, struct attn_buffer *answer, struct attn_error *error)
{
    struct look_labels labels;
    struct look_map map;
    if (!look_labels_make(look, encoding, session->tokenizer, settings->unit, question->texts,
                          &labels, error))
        return false;
    const struct look_map_settings about = {
        .model = session->name,
        .texts = question->texts,
        .heads = settings->heads,
        .head_count = settings->head_count,
        .measure = settings->measure,
        .causal = session->settings.kind != MODEL_BERT,
    };
    bool told = look_map_make(look, &labels, encoding, session->tokenizer, &about, &map, error);
    if (told) {
        told = draw_page_data(&map.map, answer, error);
        look_map_release(&map);
    }
    look_labels_release(&labels);
    return told;
}

static bool look_at(struct session *session, const struct question *question,
                    const struct encoding *encoding, struct attn_buffer *answer,
                    struct attn_error *error)
{
    const struct text_model_settings *model = &session->settings;
    const size_t tokens = encoding->token_count; /* as many rows at the most */
    size_t head_count;
    struct look_head *heads = look_page_heads(model, question->measure, &head_count);
    if (!heads)
        return attn_error_memory(error);
    head_count = look_page_fit(model, head_count, tokens);
    const struct look_settings settings = {
        .heads = heads,
        .head_count = head_count,
        .unit = LOOK_WORDS,
        .special = true,
        .measure = question->measure,
        .links = look_page_links(head_count, tokens),
        .vectors = look_page_vectors(model, tokens),
    };
    struct look look;
    compute_enter(&session->compute);
    bool done = look_run(session->text_model, &session->compute, encoding, &settings, &look, error);
    if (done) {
        done = tell(session, question, encoding, &settings, &look, answer, error);
        look_release(&look);
    }
    free(heads);
    return done;
}

static enum serve_outcome answer_question(struct session *session, const struct question *question,
                                          struct attn_buffer *answer, struct attn_error *error)
{
    struct encoding encoding;
    const struct text *pair = question->texts[1].data ? &question->texts[1] : NULL;
    if (!session_encode(session, &question->texts[0], "the text", pair, &encoding, error))
        return SERVE_REFUSED;
    enum serve_outcome outcome = SERVE_REFUSED;
    const int64_t tokens = (int64_t)encoding.token_count, positions = session->settings.positions;
    if (tokens > positions)
        attn_error_set(error, "the text has %lld tokens, the model has %lld positions: shorten it",
                       (long long)tokens, (long long)positions);
    else
        outcome =
            look_at(session, question, &encoding, answer, error) ? SERVE_ANSWERED : SERVE_FAILED;
    encoding_release(&encoding);
    return outcome;
}

enum serve_outcome serve_look(void *user, const char *body, size_t size, struct attn_buffer *answer,
                              struct attn_error *error)
{
    struct question question;
    json_error_t fault;
    json_t *object = json_loadb(body, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &fault);
    if (!object) {
        attn_error_set(error, "not JSON: line %d: %s", fault.line, fault.text);
        return SERVE_REFUSED;
    }
    const enum serve_outcome outcome = read_question(object, &question, error)
                                           ? answer_question(user, &question, answer, error)
                                           : SERVE_REFUSED;
    json_decref(object);
    return outcome;
}
