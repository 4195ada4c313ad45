#include "train/settings.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum field_kind { FIELD_WHOLE, FIELD_REAL, FIELD_BELOW, FIELD_OBJECTIVE, FIELD_SCHEDULE };

/* A field, what it is called, and what it may be. */
struct field {
    const char *name;
    size_t offset;
    enum field_kind kind;
    double minimum, maximum; /* FIELD_BELOW: less than the maximum */
};

#define FIELD(member) offsetof(struct train_settings, member)

static const struct field fields[] = {
    {"objective", FIELD(objective), FIELD_OBJECTIVE, 0, 0},
    {"ctx", FIELD(context), FIELD_WHOLE, 1, 1 << 20},
    {"batch", FIELD(batch), FIELD_WHOLE, 1, 1 << 20},
    {"accumulate", FIELD(accumulate), FIELD_WHOLE, 1, 1 << 20},
    {"steps", FIELD(schedule.total), FIELD_WHOLE, 1, 1e9},
    {"schedule", FIELD(schedule.kind), FIELD_SCHEDULE, 0, 0},
    {"lr", FIELD(schedule.peak), FIELD_REAL, 0, 1e9},
    {"final-lr", FIELD(schedule.last), FIELD_REAL, 0, 1e9},
    {"warmup", FIELD(schedule.warmup), FIELD_WHOLE, 0, 1e9},
    {"beta1", FIELD(optimizer.beta1), FIELD_BELOW, 0, 1},
    {"beta2", FIELD(optimizer.beta2), FIELD_BELOW, 0, 1},
    {"epsilon", FIELD(optimizer.epsilon), FIELD_REAL, 1e-30, 1},
    {"decay", FIELD(optimizer.decay), FIELD_REAL, 0, 1e9},
    {"clip", FIELD(clip), FIELD_REAL, 0, 1e9},
    {"dropout", FIELD(dropout), FIELD_BELOW, 0, 1},
    {"held-out", FIELD(held_out), FIELD_BELOW, 0, 1},
    {"eval-every", FIELD(evaluate_every), FIELD_WHOLE, 1, 1e9},
    {"save-every", FIELD(save_every), FIELD_WHOLE, 1, 1e9},
    {"seed", FIELD(seed), FIELD_WHOLE, 0, 9007199254740992.0},
};
static const size_t field_count = sizeof fields / sizeof fields[0];

static const char *const objectives[] = {[TRAIN_GPT] = "gpt", [TRAIN_MLM] = "mlm"};
static const char *const schedules[] = {[SCHEDULE_COSINE] = "cosine", [SCHEDULE_LINEAR] = "linear"};

void train_settings_init(struct train_settings *settings)
{
    *settings = (struct train_settings){
        .objective = TRAIN_GPT,
        .context = 128,
        .batch = 16,
        .accumulate = 1,
        .schedule = {SCHEDULE_COSINE, 1e-3, 0.0, TRAIN_AUTOMATIC, 600},
        .optimizer = {0.9, 0.99, 1e-8, 0.1},
        .clip = 1.0,
        .dropout = 0.0,
        .held_out = 0.05,
        .evaluate_every = TRAIN_AUTOMATIC,
        .save_every = TRAIN_AUTOMATIC,
        .seed = 1,
    };
}

void train_settings_complete(struct train_settings *settings)
{
    enum { LONGEST_WARMUP = 200 };
    int64_t tenth = settings->schedule.total / 10;
    int64_t interval = tenth > 0 ? tenth : 1;
    if (settings->schedule.warmup == TRAIN_AUTOMATIC)
        settings->schedule.warmup = tenth < LONGEST_WARMUP ? tenth : LONGEST_WARMUP;
    if (settings->evaluate_every == TRAIN_AUTOMATIC)
        settings->evaluate_every = interval;
    if (settings->save_every == TRAIN_AUTOMATIC)
        settings->save_every = interval;
}

static void *member(struct train_settings *settings, const struct field *field)
{
    return (char *)settings + field->offset;
}

/* What a message says that a field must be. */
static void describe(const struct field *field, char *text, size_t size)
{
    switch (field->kind) {
    case FIELD_WHOLE:
        snprintf(text, size, "a whole number from %.0f to %.0f", field->minimum, field->maximum);
        break;
    case FIELD_REAL:
        snprintf(text, size, "a number from %g to %g", field->minimum, field->maximum);
        break;
    case FIELD_BELOW:
        snprintf(text, size, "a number from %g to less than %g", field->minimum, field->maximum);
        break;
    case FIELD_OBJECTIVE:
        snprintf(text, size, "gpt or mlm");
        break;
    case FIELD_SCHEDULE:
        snprintf(text, size, "cosine or linear");
        break;
    }
}

static bool set_number(struct train_settings *settings, const struct field *field, double number)
{
    bool fits = number >= field->minimum && number <= field->maximum &&
                (field->kind != FIELD_BELOW || number < field->maximum);
    if (fits && field->kind == FIELD_WHOLE)
        *(int64_t *)member(settings, field) = (int64_t)number;
    else if (fits)
        *(double *)member(settings, field) = number;
    return fits;
}

static bool set_name(struct train_settings *settings, const struct field *field, const char *name)
{
    bool objective = field->kind == FIELD_OBJECTIVE;
    const char *const *names = objective ? objectives : schedules;
    for (int i = 0; i < 2; i++) {
        if (strcmp(names[i], name) != 0)
            continue;
        if (objective)
            settings->objective = (enum train_objective)i;
        else
            settings->schedule.kind = (enum schedule_kind)i;
        return true;
    }
    return false;
}

/* A decimal number, and nothing else: strtod takes more. */
static bool read_number(const char *text, enum field_kind kind, double *number)
{
    const char *allowed = kind == FIELD_WHOLE ? "0123456789" : "0123456789.eE+-";
    char *end = NULL;
    if (!text[0] || text[strspn(text, allowed)] ||
        !(isdigit((unsigned char)text[0]) || *text == '.'))
        return false;
    *number = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*number);
}

static const struct field *find_field(const char *name)
{
    for (size_t i = 0; i < field_count; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

bool train_settings_set(struct train_settings *settings, const char *name, const char *text,
                        struct attn_error *error)
{
    const struct field *field = find_field(name);
    if (!field)
        return attn_error_set(error, "there is no setting '%s'", name);
    double number;
    bool is_name = field->kind == FIELD_OBJECTIVE || field->kind == FIELD_SCHEDULE;
    bool done =
        is_name ? set_name(settings, field, text)
                : read_number(text, field->kind, &number) && set_number(settings, field, number);
    char expected[128];
    describe(field, expected, sizeof expected);
    return done || attn_error_set(error, "--%s is '%s', but must be %s", name, text, expected);
}

bool train_settings_check(const struct train_settings *settings, int processes,
                          struct attn_error *error)
{
    const struct schedule *schedule = &settings->schedule;
    if (schedule->warmup >= schedule->total)
        return attn_error_set(error, "--warmup is %lld, but must be less than the %lld --steps",
                              (long long)schedule->warmup, (long long)schedule->total);
    if (schedule->last > schedule->peak)
        return attn_error_set(error, "--final-lr is %g, but must be at most the %g of --lr",
                              schedule->last, schedule->peak);
    if (settings->objective == TRAIN_MLM && settings->context < 3)
        return attn_error_set(error, "--ctx is %lld, but must be at least 3: [CLS], a token, [SEP]",
                              (long long)settings->context);
    if (settings->batch % (settings->accumulate * processes) == 0)
        return true;
    if (processes == 1)
        return attn_error_set(error, "--batch is %lld, but must be divisible by --accumulate, %lld",
                              (long long)settings->batch, (long long)settings->accumulate);
    return attn_error_set(error,
                          "--batch is %lld, but must be divisible by --accumulate times the "
                          "processes, %lld·%d",
                          (long long)settings->batch, (long long)settings->accumulate, processes);
}

json_t *train_settings_to_json(const struct train_settings *settings)
{
    struct train_settings copy = *settings;
    json_t *object = json_object();
    for (size_t i = 0; object && i < field_count; i++) {
        const struct field *field = &fields[i];
        json_t *value = NULL;
        switch (field->kind) {
        case FIELD_WHOLE:
            value = json_integer(*(int64_t *)member(&copy, field));
            break;
        case FIELD_REAL:
        case FIELD_BELOW:
            value = json_real(*(double *)member(&copy, field));
            break;
        case FIELD_OBJECTIVE:
            value = json_string(objectives[settings->objective]);
            break;
        case FIELD_SCHEDULE:
            value = json_string(schedules[settings->schedule.kind]);
            break;
        }
        if (json_object_set_new(object, field->name, value) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static bool set_json(struct train_settings *settings, const struct field *field,
                     const json_t *value)
{
    switch (field->kind) {
    case FIELD_WHOLE:
        return json_is_integer(value) &&
               set_number(settings, field, (double)json_integer_value(value));
    case FIELD_REAL:
    case FIELD_BELOW:
        return json_is_number(value) && set_number(settings, field, json_number_value(value));
    default:
        return json_is_string(value) && set_name(settings, field, json_string_value(value));
    }
}

bool train_settings_from_json(struct train_settings *settings, const json_t *object,
                              const char *path, struct attn_error *error)
{
    train_settings_init(settings);
    for (size_t i = 0; i < field_count; i++) {
        const json_t *value = json_object_get(object, fields[i].name);
        if (value && set_json(settings, &fields[i], value))
            continue;
        char expected[128];
        describe(&fields[i], expected, sizeof expected);
        return attn_error_set(error, "%s: the setting %s %s, expected %s", path, fields[i].name,
                              value ? "is out of range" : "is missing", expected);
    }
    return true;
}
