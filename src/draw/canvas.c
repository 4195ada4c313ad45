#include "draw/canvas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool canvas_create(struct canvas *canvas, size_t width, size_t height)
{
    size_t size = width * height * 3;
    *canvas = (struct canvas){width, height, malloc(size ? size : 1)};
    if (canvas->pixels)
        memset(canvas->pixels, 0xff, size);
    return canvas->pixels != NULL;
}

void canvas_release(struct canvas *canvas)
{
    free(canvas->pixels);
    canvas->pixels = NULL;
}

static size_t edge(double value, size_t limit)
{
    return (size_t)fmin(fmax(round(value), 0), (double)limit);
}

void canvas_fill(struct canvas *canvas, double left, double top, double width, double height,
                 struct color color)
{
    size_t x_begin = edge(left, canvas->width), x_end = edge(left + width, canvas->width);
    size_t y_begin = edge(top, canvas->height), y_end = edge(top + height, canvas->height);
    for (size_t y = y_begin; y < y_end; y++) {
        uint8_t *pixel = canvas->pixels + (y * canvas->width + x_begin) * 3;
        for (size_t x = x_begin; x < x_end; x++, pixel += 3) {
            pixel[0] = color.red;
            pixel[1] = color.green;
            pixel[2] = color.blue;
        }
    }
}

static uint8_t mix(unsigned below, unsigned above, unsigned coverage)
{
    return (uint8_t)((below * (255 - coverage) + above * coverage + 127) / 255);
}

void canvas_blend(struct canvas *canvas, long x, long y, struct color color, unsigned coverage)
{
    if (x < 0 || y < 0 || (size_t)x >= canvas->width || (size_t)y >= canvas->height)
        return;
    uint8_t *pixel = canvas->pixels + ((size_t)y * canvas->width + (size_t)x) * 3;
    pixel[0] = mix(pixel[0], color.red, coverage);
    pixel[1] = mix(pixel[1], color.green, coverage);
    pixel[2] = mix(pixel[2], color.blue, coverage);
}
