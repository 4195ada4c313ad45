#include "draw/color_scale.h"

#include <math.h>
#include <stdbool.h>

/* A point of OKLCh: lightness 0..1, chroma, hue in degrees. */
struct oklch {
    double lightness, chroma, hue;
};

static const double pi = 3.14159265358979323846;

/* OKLab to linear sRGB: the matrices that the space's description gives. */
static void to_linear_rgb(struct oklch color, double rgb[3])
{
    double a = color.chroma * cos(color.hue * pi / 180.0);
    double b = color.chroma * sin(color.hue * pi / 180.0);
    double l = color.lightness + 0.3963377774 * a + 0.2158037573 * b;
    double m = color.lightness - 0.1055613458 * a - 0.0638541728 * b;
    double s = color.lightness - 0.0894841775 * a - 1.2914855480 * b;
    l *= l * l;
    m *= m * m;
    s *= s * s;
    rgb[0] = 4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s;
    rgb[1] = -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s;
    rgb[2] = -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s;
}

static bool is_displayable(const double rgb[3])
{
    for (int i = 0; i < 3; i++)
        if (rgb[i] < 0.0 || rgb[i] > 1.0)
            return false;
    return true;
}

static uint8_t encode(double linear)
{
    double value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1.0 / 2.4) - 0.055;
    return (uint8_t)lround(255.0 * value);
}

/* The nearest colour that a display has: lightness and hue are kept, chroma gives way. */
static struct color to_color(struct oklch color)
{
    double rgb[3];
    to_linear_rgb(color, rgb);
    while (!is_displayable(rgb) && color.chroma > 0.0) {
        color.chroma = fmax(0.0, color.chroma - 0.002);
        to_linear_rgb(color, rgb);
    }
    for (int i = 0; i < 3; i++)
        rgb[i] = fmin(fmax(rgb[i], 0.0), 1.0);
    return (struct color){encode(rgb[0]), encode(rgb[1]), encode(rgb[2])};
}

static double between(double from, double to, double part)
{
    return from + (to - from) * part;
}

/* A straight line in lightness and hue; chroma swells by `swell` in the middle. */
static void fill(struct color_scale *scale, struct oklch from, struct oklch to, double swell)
{
    for (int level = 0; level < COLOR_LEVELS; level++) {
        double part = level / (COLOR_LEVELS - 1.0);
        struct oklch color = {between(from.lightness, to.lightness, part),
                              between(from.chroma, to.chroma, part) +
                                  4.0 * swell * part * (1.0 - part),
                              between(from.hue, to.hue, part)};
        scale->level[level] = to_color(color);
    }
}

void color_scale_on_white(struct color_scale *scale)
{
    fill(scale, (struct oklch){0.968, 0.006, 235}, (struct oklch){0.27, 0.10, 280}, 0.12);
    scale->level[COLOR_NOT_A_NUMBER] = to_color((struct oklch){0.70, 0.19, 45});
}

void color_scale_on_dark(struct color_scale *scale)
{
    fill(scale, (struct oklch){0.255, 0.014, 270}, (struct oklch){0.95, 0.05, 195}, 0.11);
    scale->level[COLOR_NOT_A_NUMBER] = to_color((struct oklch){0.70, 0.19, 45});
}

int color_level(float weight, float largest)
{
    if (!isfinite(weight))
        return COLOR_NOT_A_NUMBER;
    double part = fmin(fmax((double)weight / (double)largest, 0.0), 1.0);
    return (int)lround(part * (COLOR_LEVELS - 1));
}
