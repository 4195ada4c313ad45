#include "train_options.h"

#include <stdio.h>
#include <string.h>

#include "text/tokenizer_train.h"

enum { LARGEST_VOCABULARY = (1 << 24) - 1, LARGEST_SIZE = 1 << 20 };

enum {
    OPTION_LAYERS = OPTION_OWN,
    OPTION_HEADS,
    OPTION_DIM,
    OPTION_VOCAB,
    OPTION_STOP_AFTER,
    OPTION_RESUME,
    OPTION_SAMPLE,
    OPTION_STEPS,
    OPTION_OBJECTIVE,
    OPTION_CTX,
    OPTION_BATCH,
    OPTION_ACCUMULATE,
    OPTION_SCHEDULE,
    OPTION_LR,
    OPTION_FINAL_LR,
    OPTION_WARMUP,
    OPTION_BETA1,
    OPTION_BETA2,
    OPTION_DECAY,
    OPTION_CLIP,
    OPTION_DROPOUT,
    OPTION_HELD_OUT,
    OPTION_EVAL_EVERY,
    OPTION_SAVE_EVERY,
    OPTION_SEED
};

static const struct option option_table[] = {
    OPTION_ENTRY_MODEL,
    OPTION_ENTRY_THREADS,
    OPTION_ENTRY_FILE,
    OPTION_ENTRY_OUTPUT,
    OPTION_ENTRY_HELP,
    {"layers", required_argument, NULL, OPTION_LAYERS},
    {"heads", required_argument, NULL, OPTION_HEADS},
    {"dim", required_argument, NULL, OPTION_DIM},
    {"vocab", required_argument, NULL, OPTION_VOCAB},
    {"stop-after", required_argument, NULL, OPTION_STOP_AFTER},
    {"resume", required_argument, NULL, OPTION_RESUME},
    {"sample", required_argument, NULL, OPTION_SAMPLE},
    /* Settings of src/train, which knows them by these names. */
    {"steps", required_argument, NULL, OPTION_STEPS},
    {"objective", required_argument, NULL, OPTION_OBJECTIVE},
    {"ctx", required_argument, NULL, OPTION_CTX},
    {"batch", required_argument, NULL, OPTION_BATCH},
    {"accumulate", required_argument, NULL, OPTION_ACCUMULATE},
    {"schedule", required_argument, NULL, OPTION_SCHEDULE},
    {"lr", required_argument, NULL, OPTION_LR},
    {"final-lr", required_argument, NULL, OPTION_FINAL_LR},
    {"warmup", required_argument, NULL, OPTION_WARMUP},
    {"beta1", required_argument, NULL, OPTION_BETA1},
    {"beta2", required_argument, NULL, OPTION_BETA2},
    {"decay", required_argument, NULL, OPTION_DECAY},
    {"clip", required_argument, NULL, OPTION_CLIP},
    {"dropout", required_argument, NULL, OPTION_DROPOUT},
    {"held-out", required_argument, NULL, OPTION_HELD_OUT},
    {"eval-every", required_argument, NULL, OPTION_EVAL_EVERY},
    {"save-every", required_argument, NULL, OPTION_SAVE_EVERY},
    {"seed", required_argument, NULL, OPTION_SEED},
    OPTION_ENTRY_END,
};

static bool take_size(struct train_options *options, const char *name, const char *value,
                      int64_t *size, struct attn_error *error)
{
    char option[32];
    snprintf(option, sizeof option, "--%s", name);
    options->sizing = options->changing = name;
    return options_integer(option, value, 1, LARGEST_SIZE, size, error);
}

/* A number, or `bytes` for as few entries as byte-level BPE has. */
static bool take_vocabulary(struct train_options *options, const char *value,
                            struct attn_error *error)
{
    options->sizing = options->changing = "vocab";
    options->request.sizes.vocabulary = 0;
    return strcmp(value, "bytes") == 0 ||
           options_integer("--vocab", value, WORD_PIECE_SPECIALS + 1, LARGEST_VOCABULARY,
                           &options->request.sizes.vocabulary, NULL) ||
           attn_error_set(error,
                          "--vocab is '%s', but must be 'bytes' or a whole number from %d to %d",
                          value, BYTE_PAIR_SMALLEST, LARGEST_VOCABULARY);
}

static const char *option_name(int option)
{
    for (const struct option *entry = option_table; entry->name; entry++)
        if (entry->val == option)
            return entry->name;
    return "";
}

static bool take_setting(struct train_options *options, int option, const char *value,
                         struct attn_error *error)
{
    struct train_settings *settings = &options->request.settings;
    const char *name = option_name(option);
    if (!train_settings_set(settings, name, value, error))
        return false;
    if (option == OPTION_STEPS)
        options->more_steps = settings->schedule.total;
    else
        options->changing = name;
    options->request.objective_is_given |= option == OPTION_OBJECTIVE;
    options->request.context_is_given |= option == OPTION_CTX;
    return true;
}

static bool take_option(void *user, int option, const char *value, struct attn_error *error)
{
    struct train_options *options = user;
    struct language_model_settings *sizes = &options->request.sizes;
    switch (option) {
    case OPTION_LAYERS:
        return take_size(options, "layers", value, &sizes->layers, error);
    case OPTION_HEADS:
        return take_size(options, "heads", value, &sizes->heads, error);
    case OPTION_DIM:
        return take_size(options, "dim", value, &sizes->width, error);
    case OPTION_VOCAB:
        return take_vocabulary(options, value, error);
    case OPTION_STOP_AFTER:
        return options_integer("--stop-after", value, 1, INT64_MAX, &options->stop_after, error);
    case OPTION_SAMPLE:
        return options_integer("--sample", value, 1, LARGEST_SIZE, &options->sample, error);
    case OPTION_RESUME:
        options->resume = value;
        return value[0] ||
               attn_error_set(error, "--resume is empty, but must be a training's folder");
    default:
        return take_setting(options, option, value, error);
    }
}

static bool check_resume(const struct train_options *options, struct attn_error *error)
{
    const char *other = options->shared.model    ? "model"
                        : options->shared.output ? "output"
                                                 : options->changing;
    return !other ||
           attn_error_set(error,
                          "--resume and --%s exclude each other: a resume takes its settings from "
                          "the checkpoint; only --steps may grow",
                          other);
}

static bool check_new(const struct train_options *options, struct attn_error *error)
{
    const struct training_request *request = &options->request;
    const struct language_model_settings *sizes = &request->sizes;
    bool masked = request->settings.objective == TRAIN_MLM;
    if (!options->shared.output)
        return attn_error_set(error, "the folder for the model is missing: -o FOLDER");
    if (options->shared.model && options->sizing)
        return attn_error_set(
            error,
            "-m and --%s exclude each other: sizes and tokenizer are those of the "
            "model",
            options->sizing);
    if (sizes->width % sizes->heads != 0)
        return attn_error_set(error, "--dim is %lld, but must be divisible by --heads, %lld",
                              (long long)sizes->width, (long long)sizes->heads);
    if (masked && options->sample > 0 && !options->shared.model)
        return attn_error_set(error, "--sample and --objective mlm exclude each other: a model of "
                                     "masked words does not tell the next one");
    if (masked && sizes->vocabulary == 0)
        return attn_error_set(error, "--vocab is 'bytes', but must be a number with --objective "
                                     "mlm, whose tokenizer is WordPiece");
    if (!masked && sizes->vocabulary > 0 && sizes->vocabulary < BYTE_PAIR_SMALLEST)
        return attn_error_set(error,
                              "--vocab is %lld, but must be at least %d: 256 bytes and a token for "
                              "the end",
                              (long long)sizes->vocabulary, BYTE_PAIR_SMALLEST);
    return train_settings_check(&request->settings, 1, error);
}

bool train_options_parse(int argc, char **argv, struct train_options *options,
                         struct attn_error *error)
{
    struct training_request *request = &options->request;
    *options = (struct train_options){
        .request.sizes = {.layers = 4, .heads = 4, .width = 256, .vocabulary = 4096}};
    train_settings_init(&request->settings);
    if (!options_parse(argc, argv, option_table, take_option, options, &options->shared, error))
        return false;
    if (options->shared.help)
        return true;
    train_settings_complete(&request->settings);
    request->directory = options->shared.output;
    request->corpus = options->shared.file;
    request->threads = options->shared.threads;
    if (options->shared.operand_count > 0)
        return attn_error_set(error, "'%s' is not expected; the text is a file: -f FILE",
                              options->shared.operands[0]);
    if (!request->corpus)
        return attn_error_set(error, "the text to learn from is missing: -f FILE");
    return options->resume ? check_resume(options, error) : check_new(options, error);
}
