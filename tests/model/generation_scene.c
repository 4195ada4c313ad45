#include "generation_scene.h"

#include "cmocka_test.h"
#include "scratch_folder.h"
#include "text/tokenizer_lists.h"
#include "tiny_model.h"

bool take_token(void *user, const struct written_token *token)
{
    struct told *told = user;
    assert_true(token->sequence >= 0 && token->sequence < SEQUENCES);
    const int64_t place = told->of[token->sequence].count++;
    assert_true(place < ROOM && !told->of[token->sequence].ended);
    told->of[token->sequence].ids[place] = token->id;
    told->of[token->sequence].log_probabilities[place] = token->log_probability;
    attn_buffer_add(&told->of[token->sequence].text, token->text, token->text_size);
    return told->wanted == 0 || place + 1 < told->wanted;
}

void take_end(void *user, int64_t sequence, enum generation_end end, const char *text,
              size_t text_size)
{
    struct told *told = user;
    assert_false(told->of[sequence].ended);
    told->of[sequence].ended = true;
    told->of[sequence].end = end;
    attn_buffer_add(&told->of[sequence].text, text, text_size);
}

void told_release(struct told *told)
{
    for (int n = 0; n < SEQUENCES; n++)
        attn_buffer_release(&told->of[n].text);
}

struct world world_open(const char *name)
{
    struct world world;
    struct attn_error error;
    struct tiny_model model = tiny_model_read(name);
    world.folder = tiny_model_save(&model);
    tiny_model_free(&model);
    world.scene = causal_scene_open(world.folder);
    static const char letters[] = "abcdefghijk";
    struct text_span tokens[sizeof letters - 1];
    assert_true(world.scene.vocabulary < (int64_t)sizeof letters);
    for (size_t n = 0; n < sizeof letters - 1; n++)
        tokens[n] = (struct text_span){&letters[n], 1};
    const struct tokenizer_lists lists = {.file = "letters",
                                          .splits = {"gpt-2", 5},
                                          .tokens = tokens,
                                          .token_count = (size_t)world.scene.vocabulary,
                                          .first_id = -1};
    if (!compute_create(&world.compute, 1, &error) ||
        !tokenizer_open_lists(&world.tokenizer, &lists, &error))
        fail_msg("%s", error.message);
    return world;
}

void world_close(struct world *world)
{
    tokenizer_close(world->tokenizer);
    compute_destroy(&world->compute);
    causal_scene_close(&world->scene);
    scratch_folder_remove(world->folder);
}

struct causal_session *open_session(const struct world *world, int64_t sequences)
{
    return causal_scene_session(&world->scene, &world->compute, sequences, CACHE_F32);
}

struct generation_settings greedy(void)
{
    struct generation_settings settings = {.limit = -1};
    sampler_settings_init(&settings.sampler);
    settings.sampler.temperature = 0.0;
    return settings;
}

void write_on(const struct world *world, struct causal_session *session,
              const struct generation_settings *settings, const struct prompt *prompts,
              int64_t count, struct told *told)
{
    const struct generation_listener listener = {
        .token = take_token, .end = take_end, .user = told};
    struct attn_error error;
    if (!generate(session, world->tokenizer, settings, prompts, count, &listener, &error))
        fail_msg("%s", error.message);
    for (int64_t n = 0; n < count; n++)
        assert_true(told->of[n].ended);
}

void write_alone(const struct world *world, const struct generation_settings *settings,
                 const struct prompt *prompt, struct told *told)
{
    struct causal_session *session = open_session(world, 1);
    write_on(world, session, settings, prompt, 1, told);
    causal_session_destroy(session);
}

int64_t read_ids(const json_t *list, int32_t ids[ROOM])
{
    assert_true(json_array_size(list) <= ROOM);
    for (size_t n = 0; n < json_array_size(list); n++)
        ids[n] = (int32_t)json_integer_value(json_array_get(list, n));
    return (int64_t)json_array_size(list);
}

const int32_t words[] = {1, 2, 3, 4, 5, 0, 7, 8, 6, 2};
const struct prompt several[SEQUENCES] = {
    {words, 5, 0}, {words + 3, 1, 0}, {words + 1, 9, 0}, {words + 6, 3, 0}};

bool count_rows(void *user, int64_t layer, const struct compute *compute,
                const struct attention_record *record, struct attn_error *error)
{
    int64_t *rows = user;
    (void)compute;
    (void)error;
    if (layer == 0)
        *rows += record->q.shape[2];
    return true;
}
