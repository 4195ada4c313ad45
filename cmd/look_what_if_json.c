/* What a change does, as JSON, and the names that both forms share. */
#include <string.h>

#include "draw/label.h"
#include "look_what_if_report.h"

void what_if_add_word(const struct tokenizer *tokenizer, int32_t id, struct attn_buffer *out)
{
    struct attn_error ignored;
    const char *piece = tokenizer_piece(tokenizer, id);
    const size_t before = out->size;
    if (!piece) {
        attn_buffer_format(out, "#%ld", (long)id);
        return;
    }
    if (tokenizer_get_kind(tokenizer) == TOKENIZER_BYTE_PAIR &&
        !tokenizer_decode(tokenizer, &id, 1, out, &ignored))
        out->failed = true;
    if (out->size == before)
        attn_buffer_add_text(out, piece);
}

void what_if_add_head(const struct look_head *head, struct attn_buffer *out)
{
    attn_buffer_format(out, "L%lld", (long long)head->layer);
    if (head->head != LOOK_MEAN)
        attn_buffer_format(out, "H%lld", (long long)head->head);
}

static void add_string(const char *text, struct attn_buffer *out)
{
    attn_buffer_add_json_string(out, text, strlen(text));
}

static void add_heads(const struct look_head *heads, size_t count, struct attn_buffer *out)
{
    attn_buffer_add_text(out, "[");
    for (size_t n = 0; n < count; n++) {
        attn_buffer_add_text(out, n > 0 ? ", \"" : "\"");
        what_if_add_head(&heads[n], out);
        attn_buffer_add_text(out, "\"");
    }
    attn_buffer_add_text(out, "]");
}

static void add_change(const struct what_if_report *report, struct attn_buffer *out)
{
    const struct look_options *options = report->options;
    attn_buffer_add_text(out, "{\"ablated\": ");
    add_heads(options->ablated, options->ablated_count, out);
    attn_buffer_add_text(out, ", \"cut\": [");
    for (size_t n = 0; n < options->cut_count; n++) {
        const char *cut = options->cuts[n];
        const size_t size = report->what_if->query_sizes[n];
        attn_buffer_add_text(out, n > 0 ? ", {\"query\": " : "{\"query\": ");
        attn_buffer_add_json_string(out, cut, size);
        attn_buffer_add_text(out, ", \"key\": ");
        add_string(cut + size + 1, out);
        attn_buffer_add_text(out, "}");
    }
    attn_buffer_add_text(out, "], \"cut_in\": ");
    if (options->cut_count == 0 || options->heads[0].layer == LOOK_MEAN)
        attn_buffer_add_text(out, "null");
    else
        add_heads(options->heads, options->head_count, out);
    attn_buffer_add_text(out, "}");
}

/* A word may be part of a character, which JSON cannot hold. */
static void add_word(const struct what_if_report *report, const struct what_if_word *word,
                     struct attn_buffer *out)
{
    struct attn_buffer bytes = {0}, repaired = {0};
    what_if_add_word(report->session->tokenizer, word->id, &bytes);
    label_repair(bytes.data ? bytes.data : "", bytes.size, &repaired);
    attn_buffer_add_text(out, "{\"word\": ");
    attn_buffer_add_json_string(out, repaired.data ? repaired.data : "", repaired.size);
    attn_buffer_format(out, ", \"id\": %ld, \"before\": ", (long)word->id);
    attn_buffer_add_json_float(out, (float)word->before);
    attn_buffer_add_text(out, ", \"after\": ");
    attn_buffer_add_json_float(out, (float)word->after);
    attn_buffer_add_text(out, "}");
    out->failed = out->failed || bytes.failed || repaired.failed;
    attn_buffer_release(&bytes);
    attn_buffer_release(&repaired);
}

static void add_place(const struct what_if_report *report, const struct what_if_place *place,
                      struct attn_buffer *out)
{
    if (place->token == WHAT_IF_NEXT) {
        attn_buffer_add_text(out, "{\"place\": \"next\"");
    } else {
        const struct token *token = &report->encoding->tokens[place->token];
        attn_buffer_format(out,
                           "{\"place\": \"mask\", \"in_pair\": %s, \"begin\": %zu, \"end\": %zu",
                           token->text == 1 ? "true" : "false", token->begin, token->end);
    }
    attn_buffer_add_text(out, ", \"words\": [");
    for (size_t n = 0; n < place->word_count; n++) {
        attn_buffer_add_text(out, n > 0 ? ", " : "");
        add_word(report, &place->words[n], out);
    }
    attn_buffer_add_text(out, "], \"divergence\": ");
    attn_buffer_add_json_float(out, (float)place->divergence);
    attn_buffer_add_text(out, "}");
}

static void add_moves(const struct what_if_report *report, struct attn_buffer *out)
{
    attn_buffer_add_text(out, ", \"words\": [");
    for (size_t n = 0; n < report->move_count; n++) {
        attn_buffer_add_text(out, n > 0 ? ", {\"word\": " : "{\"word\": ");
        add_string(report->labels->units[report->moves[n].unit], out);
        attn_buffer_add_text(out, ", \"distance\": ");
        attn_buffer_add_json_float(out, (float)report->moves[n].distance);
        attn_buffer_add_text(out, "}");
    }
    attn_buffer_add_text(out, "]");
}

void what_if_report_json(const struct what_if_report *report, struct attn_buffer *out)
{
    const struct text *text = &report->texts[0], *pair = &report->texts[1];
    attn_buffer_add_text(out, "{\"model\": ");
    add_string(report->session->name, out);
    attn_buffer_add_text(out, ", \"text\": ");
    attn_buffer_add_json_string(out, text->data, text->size);
    attn_buffer_add_text(out, ", \"pair\": ");
    if (pair->data)
        attn_buffer_add_json_string(out, pair->data, pair->size);
    else
        attn_buffer_add_text(out, "null");
    attn_buffer_add_text(out, ", \"change\": ");
    add_change(report, out);
    attn_buffer_add_text(out, ", \"places\": [");
    for (size_t n = 0; n < report->effects.place_count; n++) {
        attn_buffer_add_text(out, n > 0 ? ", " : "");
        add_place(report, &report->effects.places[n], out);
    }
    attn_buffer_add_text(out, "], \"embedding_distance\": ");
    if (report->effects.has_embedding)
        attn_buffer_add_json_float(out, (float)report->effects.embedding_distance);
    else
        attn_buffer_add_text(out, "null");
    add_moves(report, out);
    attn_buffer_add_text(out, "}\n");
}
