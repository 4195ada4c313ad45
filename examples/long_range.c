/* A link over a long range: "… A B … A" must tell B. A text is pairs of a name and a value, each
 * name once, and then the same names in another order: at each of these the value has to be told.
 *
 *     c 3  a 1  d 3  b 0     a ? d ? b ? c ?
 *
 * One layer of attention learns it, and a recurrent net with as many parameters does not in the
 * same steps of the same optimizer: it must carry all pairs through every step in a state that does
 * not grow, while attention looks back at the one that it needs. Both read the same embeddings,
 * x = E[token] + F[token before], and tell a value by logits = o·W.
 *
 *     long_range [STEPS]
 *
 * prints, as training goes on, which part of the values each tells right in texts that it has not
 * seen, and in the end the seconds of one core that each took. */
#include <attn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PAIRS = 16,
    NAMES = 32,
    VALUES = 16,
    SYMBOLS = NAMES + VALUES + 1, /* and a begin */
    LENGTH = 4 * PAIRS,
    TEXTS = 32,
    TOKENS = TEXTS * LENGTH,
    WIDTH = 32, /* of embeddings, queries, keys, values */
    STATE = 20, /* of the recurrent net */
    GATES = 3,
    REPORTS = 10,
};

/* Random numbers: G. Marsaglia's xorshift64 (2003). */

static uint64_t random_state = 88172645463325252U;

static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state << 13, random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 32) * limit >> 32);
}

/* The task. */

struct texts {
    int token[TOKENS], before[TOKENS];
    int answer[TOKENS]; /* the value to tell, −1 where none is asked */
};

static void shuffle(int *items, int count)
{
    for (int n = count - 1; n > 0; n--) {
        int other = (int)random_below((uint32_t)n + 1), item = items[n];
        items[n] = items[other], items[other] = item;
    }
}

static void write_texts(struct texts *texts)
{
    for (int b = 0; b < TEXTS; b++) {
        int names[NAMES], values[NAMES];
        for (int n = 0; n < NAMES; n++)
            names[n] = n, values[n] = (int)random_below(VALUES);
        shuffle(names, NAMES);
        for (int half = 0; half < 2; half++, shuffle(names, PAIRS))
            for (int n = 0; n < PAIRS; n++) {
                const int at = b * LENGTH + (half * PAIRS + n) * 2;
                texts->token[at] = names[n];
                texts->token[at + 1] = NAMES + values[names[n]];
                texts->answer[at] = half ? values[names[n]] : -1;
                texts->answer[at + 1] = -1;
            }
        for (int t = 0; t < LENGTH; t++)
            texts->before[b * LENGTH + t] = t ? texts->token[b * LENGTH + t - 1] : SYMBOLS - 1;
    }
}

/* Matrices, row-major. */

/* y[rows][out] += x[rows][in]·w[in][out] */
static void multiply(int rows, int in, int out, const float *x, const float *w, float *y)
{
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < in; i++)
            for (int o = 0; o < out; o++)
                y[r * out + o] += x[r * in + i] * w[i * out + o];
}

/* From dy: dx += dy·wᵀ and dw += xᵀ·dy */
static void multiply_backward(int rows, int in, int out, const float *x, const float *w,
                              const float *dy, float *dx, float *dw)
{
    float turned[WIDTH * GATES * WIDTH];
    for (int i = 0; i < in; i++)
        for (int o = 0; o < out; o++)
            turned[o * in + i] = w[i * out + o];
    multiply(rows, out, in, dy, turned, dx);
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < in; i++)
            for (int o = 0; o < out; o++)
                dw[i * out + o] += x[r * in + i] * dy[r * out + o];
}

/* A model: its parameters in one block, which ends with embeddings and the output, and the layer in
 * between. */

struct model;
typedef void layer_pass(struct model *model);

enum { EMBEDDING = SYMBOLS * WIDTH, MOST = 8192 };

struct model {
    const char *name;
    int parameters, inner; /* inner: the numbers a token that the layer gives */
    layer_pass *forward, *backward;
    float values[MOST], gradients[MOST], mean[MOST], square[MOST];
    float x[TOKENS * WIDTH], dx[TOKENS * WIDTH], out[TOKENS * WIDTH], d_out[TOKENS * WIDTH];
    double seconds;
};

/* Attention: o = softmax(q·kᵀ/√d)·v with q = x·Wq, k = x·Wk, v = x·Wv. */

enum { ATTENTION_PARAMETERS = 3 * WIDTH * WIDTH };

static attn_context *context;
static float qkv[3][TOKENS * WIDTH], d_qkv[3][TOKENS * WIDTH], statistics[TOKENS * 2];

static void check(attn_status status)
{
    if (status != ATTN_SUCCESS) {
        fprintf(stderr, "%s\n", attn_message(context));
        exit(1);
    }
}

static attn_tensor rows(float *data, int dim)
{
    return attn_tensor_packed(data, ATTN_F32, TEXTS, 1, LENGTH, dim);
}

static attn_params causal(void)
{
    attn_params params;
    attn_params_init(&params);
    params.causal = 1;
    return params;
}

static void attention_forward(struct model *model)
{
    memset(qkv, 0, sizeof qkv);
    for (int n = 0; n < 3; n++)
        multiply(TOKENS, WIDTH, WIDTH, model->x, model->values + n * WIDTH * WIDTH, qkv[n]);
    attn_tensor q = rows(qkv[0], WIDTH), k = rows(qkv[1], WIDTH), v = rows(qkv[2], WIDTH);
    attn_tensor o = rows(model->out, WIDTH), stats = rows(statistics, 2);
    attn_params params = causal();
    check(attn_forward(context, &params, &q, &k, &v, &o, &stats));
}

static void attention_backward(struct model *model)
{
    attn_tensor q = rows(qkv[0], WIDTH), k = rows(qkv[1], WIDTH), v = rows(qkv[2], WIDTH);
    attn_tensor o = rows(model->out, WIDTH), stats = rows(statistics, 2);
    attn_tensor d_o = rows(model->d_out, WIDTH);
    attn_tensor d_q = rows(d_qkv[0], WIDTH), d_k = rows(d_qkv[1], WIDTH),
                d_v = rows(d_qkv[2], WIDTH);
    attn_gradients gradients;
    attn_gradients_init(&gradients);
    gradients.q = &d_q, gradients.k = &d_k, gradients.v = &d_v;
    attn_params params = causal();
    check(attn_backward(context, &params, &q, &k, &v, &o, &stats, &d_o, &gradients));
    for (int n = 0; n < 3; n++)
        multiply_backward(TOKENS, WIDTH, WIDTH, model->x, model->values + n * WIDTH * WIDTH,
                          d_qkv[n], model->dx, model->gradients + n * WIDTH * WIDTH);
}

/* A gated recurrent unit (K. Cho et al., 2014), token by token:
 *     z, r = σ(x·W + h·U + b)     n = tanh(x·W + b + r∘(h·U))     h = (1 − z)∘n + z∘h
 * with the three W side by side, and so U and b. Tokens of all texts at one time come together. */

enum {
    GATE_WIDTH = GATES * STATE,
    RECURRENT_U = WIDTH * GATE_WIDTH,
    RECURRENT_B = RECURRENT_U + STATE * GATE_WIDTH,
    RECURRENT_PARAMETERS = RECURRENT_B + GATE_WIDTH,
};

/* What each time keeps for the way back: gates z, r, n; h·U; and the states, from before the first.
 */
static float gates[LENGTH][TEXTS][GATE_WIDTH], from_state[LENGTH][TEXTS][GATE_WIDTH];
static float states[LENGTH + 1][TEXTS][STATE], inputs[LENGTH][TEXTS][WIDTH];

static void recurrent_forward(struct model *model)
{
    const float *w = model->values, *u = w + RECURRENT_U, *bias = w + RECURRENT_B;
    memset(from_state, 0, sizeof from_state);
    for (int t = 0; t < LENGTH; t++) {
        for (int b = 0; b < TEXTS; b++) {
            memcpy(inputs[t][b], model->x + (b * LENGTH + t) * WIDTH, sizeof inputs[t][b]);
            memcpy(gates[t][b], bias, sizeof gates[t][b]);
        }
        multiply(TEXTS, WIDTH, GATE_WIDTH, inputs[t][0], w, gates[t][0]);
        multiply(TEXTS, STATE, GATE_WIDTH, states[t][0], u, from_state[t][0]);
        for (int b = 0; b < TEXTS; b++)
            for (int c = 0; c < STATE; c++) {
                float *z = &gates[t][b][c], *r = z + STATE, *n = r + STATE;
                const float *hu = &from_state[t][b][c];
                *z = 1 / (1 + expf(-*z - hu[0]));
                *r = 1 / (1 + expf(-*r - hu[STATE]));
                *n = tanhf(*n + *r * hu[2 * STATE]);
                states[t + 1][b][c] = (1 - *z) * *n + *z * states[t][b][c];
                model->out[(b * LENGTH + t) * STATE + c] = states[t + 1][b][c];
            }
    }
}

static void recurrent_backward(struct model *model)
{
    const float *w = model->values, *u = w + RECURRENT_U;
    float *dw = model->gradients, *du = dw + RECURRENT_U, *d_bias = dw + RECURRENT_B;
    float dh[TEXTS][STATE] = {{0}};
    for (int t = LENGTH - 1; t >= 0; t--) {
        float d_gates[TEXTS][GATE_WIDTH], d_from_state[TEXTS][GATE_WIDTH], dx[TEXTS][WIDTH] = {{0}};
        for (int b = 0; b < TEXTS; b++)
            for (int c = 0; c < STATE; c++) {
                const float z = gates[t][b][c], r = gates[t][b][STATE + c];
                const float n = gates[t][b][2 * STATE + c], hu = from_state[t][b][2 * STATE + c];
                const float d = dh[b][c] + model->d_out[(b * LENGTH + t) * STATE + c];
                const float d_n = d * (1 - z) * (1 - n * n);
                const float d_z = d * (states[t][b][c] - n) * z * (1 - z);
                const float d_r = d_n * hu * r * (1 - r);
                const float to_input[] = {d_z, d_r, d_n}, to_state[] = {d_z, d_r, d_n * r};
                for (int g = 0; g < GATES; g++) {
                    d_gates[b][g * STATE + c] = to_input[g];
                    d_from_state[b][g * STATE + c] = to_state[g];
                    d_bias[g * STATE + c] += to_input[g];
                }
                dh[b][c] = d * z;
            }
        multiply_backward(TEXTS, WIDTH, GATE_WIDTH, inputs[t][0], w, d_gates[0], dx[0], dw);
        multiply_backward(TEXTS, STATE, GATE_WIDTH, states[t][0], u, d_from_state[0], dh[0], du);
        for (int b = 0; b < TEXTS; b++)
            memcpy(model->dx + (b * LENGTH + t) * WIDTH, dx[b], sizeof dx[b]);
    }
}

/* What both share: embeddings before the layer, logits and loss behind it, and Adam. */

static void start(struct model *model)
{
    model->parameters += 2 * EMBEDDING + model->inner * VALUES;
    for (int n = 0; n < model->parameters; n++) {
        float uniform = (float)random_below(1 << 24) / (1 << 23) - 1;
        model->values[n] = uniform * sqrtf(3.0F / WIDTH);
    }
}

/* Forward over all texts. Returns how many answers are right; with `learn` also the gradients of
 * the mean cross-entropy. */
static int run(struct model *model, const struct texts *texts, int learn)
{
    const int inner = model->inner, output = model->parameters - inner * VALUES;
    const int first = output - 2 * EMBEDDING, second = output - EMBEDDING;
    for (int n = 0; n < TOKENS; n++)
        for (int c = 0; c < WIDTH; c++)
            model->x[n * WIDTH + c] = model->values[first + texts->token[n] * WIDTH + c] +
                                      model->values[second + texts->before[n] * WIDTH + c];
    model->forward(model);

    int right = 0;
    memset(model->gradients, 0, sizeof model->gradients);
    memset(model->dx, 0, sizeof model->dx);
    memset(model->d_out, 0, sizeof model->d_out);
    for (int n = 0; n < TOKENS; n++) {
        const int answer = texts->answer[n];
        if (answer < 0)
            continue;
        float logits[VALUES] = {0}, sum = 0;
        multiply(1, inner, VALUES, model->out + n * inner, model->values + output, logits);
        int told = 0;
        for (int c = 0; c < VALUES; c++)
            told = logits[c] > logits[told] ? c : told;
        right += told == answer;
        const float largest = logits[told];
        for (int c = 0; c < VALUES; c++)
            sum += logits[c] = expf(logits[c] - largest);
        for (int c = 0; c < VALUES; c++) /* ∂/∂logits: softmax − answer */
            logits[c] = (logits[c] / sum - (float)(c == answer)) / (TEXTS * PAIRS);
        if (learn)
            multiply_backward(1, inner, VALUES, model->out + n * inner, model->values + output,
                              logits, model->d_out + n * inner, model->gradients + output);
    }
    if (!learn)
        return right;
    model->backward(model);
    for (int n = 0; n < TOKENS; n++)
        for (int c = 0; c < WIDTH; c++) {
            model->gradients[first + texts->token[n] * WIDTH + c] += model->dx[n * WIDTH + c];
            model->gradients[second + texts->before[n] * WIDTH + c] += model->dx[n * WIDTH + c];
        }
    return right;
}

/* D. Kingma, J. Ba, "Adam" (2015). */
static void adam(struct model *model, int step)
{
    const float rate = 3e-3F, first = 0.9F, second = 0.999F;
    const float first_part = 1 - powf(first, (float)step),
                second_part = 1 - powf(second, (float)step);
    for (int n = 0; n < model->parameters; n++) {
        const float g = model->gradients[n];
        model->mean[n] += (1 - first) * (g - model->mean[n]);
        model->square[n] += (1 - second) * (g * g - model->square[n]);
        model->values[n] -=
            rate * (model->mean[n] / first_part) / (sqrtf(model->square[n] / second_part) + 1e-8F);
    }
}

static struct model models[2] = {
    {.name = "attention",
     .parameters = ATTENTION_PARAMETERS,
     .inner = WIDTH,
     .forward = attention_forward,
     .backward = attention_backward},
    {.name = "recurrent net",
     .parameters = RECURRENT_PARAMETERS,
     .inner = STATE,
     .forward = recurrent_forward,
     .backward = recurrent_backward},
};

int main(int count, char **arguments)
{
    static struct texts learned, unseen;
    const long steps = count > 1 ? strtol(arguments[1], NULL, 10) : 3000;
    if (count > 2 || steps < 1 || steps > 1000000) {
        fprintf(stderr, "usage: long_range [STEPS], 1 to 1000000\n");
        return 2;
    }
    attn_options options;
    attn_options_init(&options);
    options.threads = 1; /* as many as the recurrent net has */
    check(attn_context_create(&context, &options));
    write_texts(&unseen);
    for (int n = 0; n < 2; n++) {
        start(&models[n]);
        printf("%s: %d parameters\n", models[n].name, models[n].parameters);
    }
    printf("%6s %14s %14s\n", "step", models[0].name, models[1].name);
    for (int step = 0, reports = 0; step <= steps; step++) {
        if (step == steps || step >= steps * reports / REPORTS) {
            printf("%6d", step);
            for (int n = 0; n < 2; n++)
                printf(" %12.1f %%", 100.0 * run(&models[n], &unseen, 0) / (TEXTS * PAIRS));
            printf("\n");
            reports++;
        }
        write_texts(&learned);
        for (int n = 0; n < 2 && step < steps; n++) {
            const clock_t begin = clock();
            run(&models[n], &learned, 1);
            adam(&models[n], step + 1);
            models[n].seconds += (double)(clock() - begin) / CLOCKS_PER_SEC;
        }
    }
    for (int n = 0; n < 2; n++)
        printf("%s: %.2f s\n", models[n].name, models[n].seconds);
    attn_context_destroy(context);
    return 0;
}
