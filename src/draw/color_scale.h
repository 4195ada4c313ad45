/* The colours of weights: one sequential scale, even to the eye. */
#ifndef ATTN_DRAW_COLOR_SCALE_H
#define ATTN_DRAW_COLOR_SCALE_H

#include <stdint.h>

enum {
    COLOR_LEVELS = 256,
    COLOR_NOT_A_NUMBER = COLOR_LEVELS /* the level of a weight that is NaN or infinite */
};

struct color {
    uint8_t red, green, blue;
};

/* Colours of the levels, the one of COLOR_NOT_A_NUMBER last. Level 0 is nearly the surface that the
 * scale is made for; lightness then runs in equal steps of OKLab (B. Ottosson 2020) away from it.
 */
struct color_scale {
    struct color level[COLOR_LEVELS + 1];
};

void color_scale_on_white(struct color_scale *scale);
void color_scale_on_dark(struct color_scale *scale);

/* The level of a weight where `largest` (> 0) has the last one. */
int color_level(float weight, float largest);

#endif
