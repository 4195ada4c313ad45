#include "draw/attention_map.h"

#include <math.h>
#include <png.h>
#include <setjmp.h>

#include "draw/figure.h"
#include "draw/text_line.h"

static const double pixel_limit = 100e6;
static const double sharp_pixel_limit = 40e6; /* up to here a figure's pixel is drawn as 2 × 2 */

struct png_painter {
    struct font_set *fonts;
    struct canvas canvas;
    double zoom; /* canvas pixels a pixel of the figure */
    bool failed; /* out of memory */
};

static double measure(void *user, const char *text, double size)
{
    struct png_painter *painter = user;
    struct text_line *line = text_line_create(painter->fonts, text, size);
    if (!line) {
        painter->failed = true;
        return 0;
    }
    double width = text_line_width(line);
    text_line_release(line);
    return width;
}

static void fill(void *user, double left, double top, double width, double height,
                 struct color color)
{
    struct png_painter *painter = user;
    double zoom = painter->zoom;
    canvas_fill(&painter->canvas, left * zoom, top * zoom, width * zoom, height * zoom, color);
}

static void draw_text(void *user, const struct figure_text *text)
{
    struct png_painter *painter = user;
    double zoom = painter->zoom;
    struct text_line *line = text_line_create(painter->fonts, text->text, text->size * zoom);
    if (!line) {
        painter->failed = true;
        return;
    }
    double back = text->anchor == TEXT_END      ? text_line_width(line)
                  : text->anchor == TEXT_MIDDLE ? text_line_width(line) / 2
                                                : 0;
    double radians = text->angle * 3.14159265358979323846 / 180;
    text_line_draw(line, &painter->canvas, text->x * zoom - back * cos(radians),
                   text->y * zoom + back * sin(radians), text->angle, text->color);
    text_line_release(line);
}

static void draw_cells(void *user, const struct figure *figure, const struct figure_panel *panel)
{
    const struct attention_map *map = figure->map;
    const float *weights = map->panels[panel->index].weights;
    for (size_t i = 0; i < map->rows * map->columns; i++) {
        size_t row = i / map->columns, column = i % map->columns;
        fill(user, panel->left + (double)column * figure->cell,
             panel->top + (double)row * figure->cell, figure->cell, figure->cell,
             figure->scale.level[color_level(weights[i], figure->largest)]);
    }
}

static void write_bytes(png_structp png, png_bytep bytes, png_size_t size)
{
    attn_buffer_add(png_get_io_ptr(png), bytes, size);
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

/* libpng prints what it has to say unless it is given these. */
static void stop(png_structp png, png_const_charp message)
{
    (void)message;
    png_longjmp(png, 1);
}

static void stay_silent(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

/* What libpng jumps over when it fails stays in here, in no local variable. */
static bool encode_with(png_structp png, png_infop info, const struct canvas *canvas, double zoom)
{
    if (setjmp(png_jmpbuf(png)))
        return false;
    png_set_IHDR(png, info, (png_uint_32)canvas->width, (png_uint_32)canvas->height, 8,
                 PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    /* 96 figure pixels an inch, as style sheets count. */
    png_uint_32 per_metre = (png_uint_32)(96 / 0.0254 * zoom);
    png_set_pHYs(png, info, per_metre, per_metre, PNG_RESOLUTION_METER);
    png_write_info(png, info);
    for (size_t y = 0; y < canvas->height; y++)
        png_write_row(png, canvas->pixels + y * canvas->width * 3);
    png_write_end(png, info);
    return true;
}

static bool encode(const struct canvas *canvas, double zoom, struct attn_buffer *out)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, stop, stay_silent);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    bool written = false;
    if (info) {
        png_set_write_fn(png, out, write_bytes, flush_nothing);
        written = encode_with(png, info, canvas, zoom);
    }
    png_destroy_write_struct(&png, &info);
    return written && !out->failed;
}

static bool paint(const struct figure *figure, const struct figure_painter *functions,
                  struct attn_buffer *out, struct attn_error *error)
{
    struct png_painter *painter = functions->user;
    double pixels = figure->width * figure->height;
    if (pixels > pixel_limit)
        return attn_error_set(error,
                              "the PNG would have %.0f × %.0f pixels, at most %.0f million are "
                              "drawn: choose fewer heads or a shorter text, or draw an .html page",
                              figure->width, figure->height, pixel_limit / 1e6);
    painter->zoom = pixels * 4 <= sharp_pixel_limit ? 2 : 1;
    bool drawn = canvas_create(&painter->canvas, (size_t)(figure->width * painter->zoom),
                               (size_t)(figure->height * painter->zoom));
    if (drawn) {
        figure_draw(figure, functions);
        drawn = !painter->failed && encode(&painter->canvas, painter->zoom, out);
    }
    canvas_release(&painter->canvas);
    return drawn || attn_error_memory(error);
}

bool draw_png(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error)
{
    struct png_painter painter = {0};
    const struct figure_painter functions = {.user = &painter,
                                             .text_width = measure,
                                             .rectangle = fill,
                                             .text = draw_text,
                                             .cells = draw_cells};
    struct figure figure;
    if (!font_set_open(&painter.fonts, error))
        return false;
    bool drawn = figure_create(&figure, map, &functions, error);
    if (drawn) {
        drawn = paint(&figure, &functions, out, error);
        figure_release(&figure);
    }
    font_set_close(painter.fonts);
    return drawn;
}
