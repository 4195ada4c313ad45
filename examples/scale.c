/* Why scores are divided by √d_k. The product of two random vectors of d_k numbers has variance
 * d_k: without the division scores grow with d_k, the softmax gives nearly all weight to one key,
 * and there its derivative is nearly 0, so that little is left to learn from (A. Vaswani et al.,
 * "Attention Is All You Need" (2017), section 3.2.1). This measures it on random queries, keys,
 * values and output gradients of variance 1.
 *
 *     scale [FILE.svg]
 *
 * prints a table, and draws its variances and gradients if a file is named. The gradient is that of
 * a query's scores, ∂L/∂s, as the length of that vector; half of the queries have less than the
 * median that is told. (attn_backward gives it as the gradient of a bias of zeros.) */
#include <attn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { QUERIES = 256, KEYS = 64, MOST = 512, VALUE = 16, FIRST = 4, SIZES = 8, SCALES = 2 };

/* What one size and scale give: means over the queries, but for the gradient their median. */
struct measured {
    double variance, largest, entropy, gradient;
};

static void check(attn_context *context, attn_status status)
{
    if (status != ATTN_SUCCESS) {
        fprintf(stderr, "%s\n", attn_message(context));
        exit(1);
    }
}

/* Standard normal numbers: G. Marsaglia's xorshift64, then G. Box and M. Muller's transform. */
static double uniform(void)
{
    static uint64_t state = 88172645463325252U;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return ((double)(state >> 11) + 0.5) / 0x1p53;
}

static void fill(float *numbers, int count)
{
    for (int n = 0; n < count; n++) {
        const double radius = sqrt(-2 * log(uniform()));
        numbers[n] = (float)(radius * cos(2 * acos(-1.0) * uniform()));
    }
}

static float queries[QUERIES * MOST], keys[KEYS * MOST], values[KEYS * VALUE];
static float output[QUERIES * VALUE], d_output[QUERIES * VALUE], statistics[QUERIES * 2];
static float weights[QUERIES * KEYS], d_scores[QUERIES * KEYS];

static attn_tensor matrix(float *data, int64_t rows, int64_t columns)
{
    return attn_tensor_packed(data, ATTN_F32, 1, 1, rows, columns);
}

/* Fills weights and d_scores. */
static void attend(attn_context *context, float scale, int d)
{
    static float zeros[QUERIES * KEYS];
    attn_tensor q = matrix(queries, QUERIES, d), k = matrix(keys, KEYS, d);
    attn_tensor v = matrix(values, KEYS, VALUE), o = matrix(output, QUERIES, VALUE);
    attn_tensor d_o = matrix(d_output, QUERIES, VALUE), stats = matrix(statistics, QUERIES, 2);
    attn_tensor p = matrix(weights, QUERIES, KEYS), d_s = matrix(d_scores, QUERIES, KEYS);
    attn_tensor bias = matrix(zeros, QUERIES, KEYS);
    attn_params params;
    attn_params_init(&params);
    params.scale = scale;
    params.bias = &bias;
    check(context, attn_forward(context, &params, &q, &k, &v, &o, &stats));
    check(context, attn_weights(context, &params, &q, &k, &stats, NULL, &p));
    attn_gradients gradients;
    attn_gradients_init(&gradients);
    gradients.bias = &d_s;
    check(context, attn_backward(context, &params, &q, &k, &v, &o, &stats, &d_o, &gradients));
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct measured measure(attn_context *context, float scale, int d)
{
    struct measured mean = {0, 0, 0, 0};
    double lengths[QUERIES];
    attend(context, scale, d);
    for (int i = 0; i < QUERIES; i++) {
        double largest = 0, square = 0;
        for (int j = 0; j < KEYS; j++) {
            double score = 0;
            const double weight = (double)weights[i * KEYS + j];
            const double slope = (double)d_scores[i * KEYS + j];
            for (int c = 0; c < d; c++)
                score += (double)scale * (double)queries[i * d + c] * (double)keys[j * d + c];
            mean.variance += score * score / (QUERIES * KEYS); /* around 0, their expectation */
            mean.entropy -= weight > 0 ? weight * log(weight) / QUERIES : 0;
            largest = weight > largest ? weight : largest;
            square += slope * slope;
        }
        mean.largest += largest / QUERIES;
        lengths[i] = sqrt(square);
    }
    qsort(lengths, QUERIES, sizeof *lengths, compare);
    mean.gradient = (lengths[QUERIES / 2 - 1] + lengths[QUERIES / 2]) / 2;
    return mean;
}

/* A chart of two lines over d_k, both axes logarithmic. */

struct chart {
    const char *title;
    double low, high; /* of the vertical axis, powers of 10 */
    double left;      /* where its frame begins in the picture */
    double lines[SCALES][SIZES];
};

static const double top = 50, width = 310, height = 260;
static const char *const names[SCALES] = {"q·k", "q·k / √d_k"};
static const char *const colors[SCALES] = {"#c0392b", "#1f6fb2"};

static double across(const struct chart *chart, double size)
{
    return chart->left + width * log2(size / FIRST) / (SIZES - 1);
}

static double down(const struct chart *chart, double number)
{
    return top + height * log(chart->high / number) / log(chart->high / chart->low);
}

static void draw_axes(FILE *file, const struct chart *chart)
{
    const double bottom = top + height, right = chart->left + width;
    fprintf(file, "<text x=\"%g\" y=\"28\" font-size=\"15\">%s</text>\n", chart->left,
            chart->title);
    for (double tick = chart->low; tick < chart->high * 1.1; tick *= 10) {
        const double y = down(chart, tick);
        fprintf(file, "<path d=\"M%g %.1fH%g\" stroke=\"#ddd\"/>\n", chart->left, y, right);
        fprintf(file, "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", chart->left - 8,
                y + 4, tick);
    }
    for (int size = FIRST; size <= MOST; size *= 2)
        fprintf(file, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%d</text>\n",
                across(chart, size), bottom + 18, size);
    fprintf(file, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">d_k</text>\n",
            chart->left + width / 2, bottom + 38);
    fprintf(file, "<path d=\"M%g %gV%gH%g\" fill=\"none\" stroke=\"#444\"/>\n", chart->left, top,
            bottom, right);
}

static void draw_line(FILE *file, const struct chart *chart, int line)
{
    const double *numbers = chart->lines[line];
    fprintf(file, "<path fill=\"none\" stroke-width=\"2\" stroke=\"%s\" d=\"", colors[line]);
    for (int n = 0; n < SIZES; n++)
        fprintf(file, "%c%.1f %.1f", n ? 'L' : 'M', across(chart, FIRST << n),
                down(chart, numbers[n]));
    fprintf(file, "\"/>\n");
    for (int n = 0; n < SIZES; n++)
        fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                across(chart, FIRST << n), down(chart, numbers[n]), colors[line]);
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s</text>\n", chart->left + width + 10,
            down(chart, numbers[SIZES - 1]) + 4, colors[line], names[line]);
}

static int draw(const char *path, const struct measured measured[SIZES][SCALES])
{
    struct chart variance = {"Variance of the scores", 0.1, 1000, 60, {{0}}};
    struct chart gradient = {"Gradient of a query’s scores (median length)", 0.001, 1, 500, {{0}}};
    for (int line = 0; line < SCALES; line++)
        for (int n = 0; n < SIZES; n++) {
            variance.lines[line][n] = measured[n][line].variance;
            gradient.lines[line][n] = measured[n][line].gradient;
        }
    FILE *file = fopen(path, "w");
    if (!file)
        return 0;
    fprintf(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 370\" width=\"900\" "
                  "height=\"370\" font-family=\"sans-serif\" font-size=\"12\">\n"
                  "<rect width=\"900\" height=\"370\" fill=\"#fff\"/>\n");
    const struct chart *const charts[] = {&variance, &gradient};
    for (int n = 0; n < 2; n++) {
        draw_axes(file, charts[n]);
        for (int line = 0; line < SCALES; line++)
            draw_line(file, charts[n], line);
    }
    fprintf(file, "</svg>\n");
    const int written = !ferror(file);
    return fclose(file) == 0 && written;
}

int main(int count, char **arguments)
{
    static struct measured measured[SIZES][SCALES];
    attn_context *context;
    check(NULL, attn_context_create(&context, NULL));
    printf("%27s%20s%20s%20s\n", "variance of scores", "largest weight", "entropy", "gradient");
    printf(" d_k");
    for (int n = 0; n < 4; n++)
        printf("%s%10s%10s", n ? "" : "   ", "unscaled", "scaled");
    printf("\n");
    for (int n = 0; n < SIZES; n++) {
        const int d = FIRST << n;
        fill(queries, QUERIES * d), fill(keys, KEYS * d), fill(values, KEYS * VALUE);
        fill(d_output, QUERIES * VALUE);
        struct measured *un = &measured[n][0], *scaled = &measured[n][1];
        *un = measure(context, 1, d), *scaled = measure(context, 1 / sqrtf((float)d), d);
        printf("%4d   %10.3f%10.3f%10.4f%10.4f%10.4f%10.4f%10.4f%10.4f\n", d, un->variance,
               scaled->variance, un->largest, scaled->largest, un->entropy, scaled->entropy,
               un->gradient, scaled->gradient);
    }
    attn_context_destroy(context);
    if (count > 1 && !draw(arguments[1], measured)) {
        fprintf(stderr, "%s cannot be written\n", arguments[1]);
        return 1;
    }
    return 0;
}
