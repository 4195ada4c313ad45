#include "train/training.h"

#include "text/tokenizer_train.h"

/* Only one process writes; all go on or none does. */
static bool is_writer(const struct training *training)
{
    return processes_rank(training->processes) == 0;
}

/* The tokenizer's file, made from the text that is learned from. */
static bool train_tokenizer(struct training *training, const struct training_request *request,
                            struct attn_error *error)
{
    const struct corpus *corpus = &training->corpus;
    struct attn_buffer json = {0};
    int32_t size = (int32_t)request->sizes.vocabulary;
    bool done = request->settings.objective == TRAIN_MLM
                    ? word_piece_train(corpus->text, corpus->training_size, size, &json, error)
                    : byte_pair_train(corpus->text, corpus->training_size,
                                      size > 0 ? size : BYTE_PAIR_SMALLEST, &json, error);
    done = done && training_folder_add_tokenizer(&training->folder, json.data, json.size, error);
    attn_buffer_release(&json);
    return done;
}

static bool write_tokenizer(struct training *training, const struct training_request *request,
                            struct attn_error *error)
{
    if (!is_writer(training))
        return true;
    if (!training_folder_open(&training->folder, request->directory, error))
        return false;
    return request->checkpoint
               ? training_folder_copy_tokenizer(&training->folder, request->checkpoint, error)
               : train_tokenizer(training, request, error);
}

static bool open_text(struct training *training, struct attn_error *error)
{
    return tokenizer_open(&training->tokenizer, training->directory, error) &&
           corpus_encode(&training->corpus, training->tokenizer, error);
}

static bool create_model(struct training *training, const struct training_request *request,
                         struct attn_error *error)
{
    const struct train_settings *settings = &training->state.settings;
    struct language_model_settings sizes = request->sizes;
    sizes.kind = settings->objective == TRAIN_MLM ? LANGUAGE_MODEL_BERT : LANGUAGE_MODEL_GPT2;
    sizes.vocabulary = tokenizer_size(training->tokenizer);
    sizes.context = settings->context;
    sizes.dropout = (float)settings->dropout;
    return language_model_create(&training->model, &sizes, (uint64_t)settings->seed, error);
}

/* What the model says about the settings goes before their defaults, and not before the user. */
static bool adopt_model(struct training *training, const struct training_request *request,
                        struct attn_error *error)
{
    struct train_settings *settings = &training->state.settings;
    const struct language_model_settings *sizes = language_model_get_settings(training->model);
    enum train_objective objective = sizes->kind == LANGUAGE_MODEL_BERT ? TRAIN_MLM : TRAIN_GPT;
    if (request->objective_is_given && settings->objective != objective)
        return attn_error_set(error, "%s: is a %s, which learns by --objective %s",
                              request->checkpoint, objective == TRAIN_MLM ? "BERT" : "GPT-2",
                              objective == TRAIN_MLM ? "mlm" : "gpt");
    settings->objective = objective;
    if (settings->context > sizes->context) {
        if (request->context_is_given)
            return attn_error_set(error, "--ctx is %lld, but the model has %lld positions",
                                  (long long)settings->context, (long long)sizes->context);
        settings->context = sizes->context;
    }
    return true;
}

static bool open_checkpoint(struct training *training, const struct training_request *request,
                            struct attn_error *error)
{
    return language_model_open(&training->model, request->checkpoint,
                               (uint64_t)request->settings.seed, error) &&
           adopt_model(training, request, error);
}

static bool check_vocabulary(const struct training *training, struct attn_error *error)
{
    int64_t entries = language_model_get_settings(training->model)->vocabulary;
    int64_t size = tokenizer_size(training->tokenizer);
    return size <= entries ||
           attn_error_set(error, "the tokenizer has %lld ids, the model only %lld", (long long)size,
                          (long long)entries);
}

/* What a new training and a resumed one have in common, once there is a model. */
static bool prepare(struct training *training, int threads, struct attn_error *error)
{
    const struct train_settings *settings = &training->state.settings;
    if (!check_vocabulary(training, error) ||
        !batches_create(&training->batches, settings, &training->corpus, training->tokenizer,
                        error))
        return false;
    struct parameters *parameters = language_model_parameters(training->model);
    language_model_set_dropout(training->model, (float)settings->dropout);
    return compute_create(&training->compute, threads, error) &&
           parameters_want_gradients(parameters, error) &&
           optimizer_create(&training->optimizer, parameters, &settings->optimizer, error);
}

static bool begin(struct training *training, const struct training_request *request,
                  struct attn_error *error)
{
    training->state.corpus_checksum = training->corpus.checksum;
    training->state.corpus_size = (int64_t)training->corpus.size;
    return open_text(training, error) &&
           (request->checkpoint || create_model(training, request, error)) &&
           prepare(training, request->threads, error);
}

static bool open_log(struct training *training, struct attn_error *error)
{
    return !is_writer(training) ||
           training_log_open(&training->log, training->directory, training->state.step, error);
}

bool training_begin(struct training *training, const struct training_request *request,
                    struct attn_error *error)
{
    struct processes *processes = request->processes;
    *training = (struct training){.directory = request->directory, .processes = processes};
    training->state.settings = request->settings;
    /* What can be known without the tokenizer is checked before anything is written. */
    bool done =
        corpus_read(&training->corpus, request->corpus, request->settings.held_out, error) &&
        (!request->checkpoint || open_checkpoint(training, request, error)) &&
        train_settings_check(&training->state.settings, processes_count(processes), error);
    done = processes_agree(processes, done, error);
    done = done && processes_agree(processes, write_tokenizer(training, request, error), error);
    done = done && processes_agree(processes, begin(training, request, error), error);
    done = done && processes_agree(processes, open_log(training, error), error);
    if (!done) {
        training_folder_undo(&training->folder);
        training_close(training);
    }
    return done;
}

static bool extend_steps(struct training *training, int64_t steps, struct attn_error *error)
{
    int64_t *total = &training->state.settings.schedule.total;
    if (steps > 0 && steps < *total)
        return attn_error_set(error,
                              "--steps is %lld, but %s was begun with %lld: a resume may only add "
                              "steps",
                              (long long)steps, training->directory, (long long)*total);
    if (steps > 0)
        *total = steps;
    return training->state.step <= *total ||
           attn_error_set(error, "%s: step %lld lies behind the last, %lld", training->directory,
                          (long long)training->state.step, (long long)*total);
}

static bool open_same_corpus(struct training *training, const char *path, struct attn_error *error)
{
    const struct training_state *state = &training->state;
    if (!corpus_read(&training->corpus, path, state->settings.held_out, error))
        return false;
    if (state->corpus_checksum == training->corpus.checksum &&
        state->corpus_size == (int64_t)training->corpus.size)
        return true;
    return attn_error_set(error, "%s: is not the text that %s learns from, which has %lld bytes",
                          path, training->directory, (long long)state->corpus_size);
}

static bool resume(struct training *training, const char *corpus, int64_t steps, int threads,
                   struct attn_error *error)
{
    struct training_file *file;
    if (!training_file_open(&file, training->directory, &training->state, error))
        return false;
    bool done =
        (!is_writer(training) ||
         training_folder_reopen(&training->folder, training->directory, error)) &&
        extend_steps(training, steps, error) &&
        train_settings_check(&training->state.settings, processes_count(training->processes),
                             error) &&
        open_same_corpus(training, corpus, error) &&
        language_model_open(&training->model, training->directory,
                            (uint64_t)training->state.settings.seed, error) &&
        open_text(training, error) && prepare(training, threads, error) &&
        training_file_load(file, &training->state, language_model_parameters(training->model),
                           &training->optimizer, error);
    training_file_close(file);
    return done;
}

bool training_resume(struct training *training, const char *directory, const char *corpus,
                     int64_t steps, int threads, struct processes *processes,
                     struct attn_error *error)
{
    *training = (struct training){.directory = directory, .processes = processes};
    bool done = processes_agree(processes, resume(training, corpus, steps, threads, error), error);
    done = done && processes_agree(processes, open_log(training, error), error);
    if (!done)
        training_close(training);
    return done;
}

/* The token that stands at a text's end, or fills up what is too short. */
static int32_t special_id(const struct training *training)
{
    bool masked = training->state.settings.objective == TRAIN_MLM;
    return tokenizer_special(training->tokenizer, masked ? "[PAD]" : "<|endoftext|>");
}

bool training_save(const struct training *training, struct attn_error *error)
{
    return language_model_write(training->model, training->directory, special_id(training),
                                error) &&
           training_state_write(&training->state, training->directory,
                                language_model_parameters(training->model), &training->optimizer,
                                error);
}

void training_close(struct training *training)
{
    batches_destroy(&training->batches);
    optimizer_destroy(&training->optimizer);
    language_model_close(training->model);
    if (training->compute.attention)
        compute_destroy(&training->compute);
    tokenizer_close(training->tokenizer);
    corpus_release(&training->corpus);
    training_log_close(&training->log);
    training_folder_close(&training->folder);
    *training = (struct training){0};
}
