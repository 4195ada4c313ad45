#include "draw/text_line.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "draw/label.h"
#include "draw/text_order.h"

struct placed_glyph {
    struct font_glyph glyph;
    int32_t code;   /* for the box, where no font has it */
    double advance; /* pixels along the line */
};

struct text_line {
    struct font_set *fonts;
    double size, width;
    size_t count;
    struct placed_glyph glyphs[];
};

/* A turned line's coordinates: a point `along` the line and `up` from its baseline. */
struct slant {
    double x, y; /* the origin on the canvas */
    double cosine, sine;
};

static double slant_x(const struct slant *slant, double along, double up)
{
    return slant->x + along * slant->cosine - up * slant->sine;
}

static double slant_y(const struct slant *slant, double along, double up)
{
    return slant->y - along * slant->sine - up * slant->cosine;
}

static struct slant slant_moved(const struct slant *slant, double along, double up)
{
    return (struct slant){slant_x(slant, along, up), slant_y(slant, along, up), slant->cosine,
                          slant->sine};
}

static FT_Int32 load_flags(FT_Face face)
{
    return FT_HAS_COLOR(face) ? FT_LOAD_NO_HINTING | FT_LOAD_COLOR
                              : FT_LOAD_NO_HINTING | FT_LOAD_NO_BITMAP;
}

/* Sets the face to a size. Returns what its glyphs must be scaled by to have it: 1, but for faces
 * that are pictures of one size; 0 where that fails. */
static double set_size(FT_Face face, double size)
{
    if (FT_IS_SCALABLE(face))
        return FT_Set_Char_Size(face, 0, (FT_F26Dot6)lround(size * 64), 72, 72) ? 0 : 1;
    if (face->num_fixed_sizes < 1 || FT_Select_Size(face, 0) || face->size->metrics.y_ppem == 0)
        return 0;
    return size / face->size->metrics.y_ppem;
}

static double box_advance(double size)
{
    return 0.8 * size;
}

static void place_glyph(struct text_line *line, struct ordered_letter letter)
{
    struct placed_glyph placed = {.glyph = font_set_find(line->fonts, letter.shaped),
                                  .code = letter.plain};
    if (!placed.glyph.face && letter.plain != letter.shaped)
        placed.glyph = font_set_find(line->fonts, letter.plain);
    FT_Face face = placed.glyph.face;
    double scale = face ? set_size(face, line->size) : 0;
    if (scale > 0) {
        FT_Set_Transform(face, NULL, NULL);
        if (FT_Load_Glyph(face, placed.glyph.index, load_flags(face)))
            scale = 0;
    }
    if (scale > 0) {
        placed.advance = (double)face->glyph->advance.x / 64 * scale;
    } else {
        placed.glyph.face = NULL;
        placed.advance = box_advance(line->size);
    }
    line->width += placed.advance;
    line->glyphs[line->count++] = placed;
}

struct text_line *text_line_create(struct font_set *fonts, const char *text, double size)
{
    size_t count;
    struct ordered_letter *letters = text_order_create(text, &count);
    if (!letters)
        return NULL;
    struct text_line *line = calloc(1, sizeof *line + count * sizeof line->glyphs[0]);
    if (line) {
        line->fonts = fonts;
        line->size = size;
        for (size_t i = 0; i < count; i++)
            place_glyph(line, letters[i]);
    }
    free(letters);
    return line;
}

void text_line_release(struct text_line *line)
{
    free(line);
}

double text_line_width(const struct text_line *line)
{
    return line->width;
}

/* A picture in the line's coordinates: the colour at a point, and its coverage 0..255. */
typedef unsigned (*sampler)(const void *user, double along, double up, struct color *color);

/* Draws the part of a picture within 0..width along and bottom..top up, at 4 × 4 points a pixel. */
static void draw_sampled(struct canvas *canvas, const struct slant *slant, double width,
                         double bottom, double top, sampler sample, const void *user)
{
    enum { POINTS = 4 };
    double left = INFINITY, right = -INFINITY, upper = INFINITY, lower = -INFINITY;
    for (int corner = 0; corner < 4; corner++) {
        double along = corner & 1 ? width : 0, up = corner & 2 ? top : bottom;
        left = fmin(left, slant_x(slant, along, up));
        right = fmax(right, slant_x(slant, along, up));
        upper = fmin(upper, slant_y(slant, along, up));
        lower = fmax(lower, slant_y(slant, along, up));
    }
    for (long y = (long)floor(upper); y <= (long)lower; y++) {
        for (long x = (long)floor(left); x <= (long)right; x++) {
            unsigned red = 0, green = 0, blue = 0, total = 0;
            for (int point = 0; point < POINTS * POINTS; point++) {
                double dx = (double)x + (point % POINTS + 0.5) / POINTS - slant->x;
                double dy =
                    (double)y + ((point - point % POINTS) / POINTS + 0.5) / POINTS - slant->y;
                double along = dx * slant->cosine - dy * slant->sine;
                double up = -dx * slant->sine - dy * slant->cosine;
                struct color color;
                if (along < 0 || along >= width || up < bottom || up >= top)
                    continue;
                unsigned coverage = sample(user, along, up, &color);
                red += color.red * coverage;
                green += color.green * coverage;
                blue += color.blue * coverage;
                total += coverage;
            }
            if (total) {
                struct color mean = {(uint8_t)(red / total), (uint8_t)(green / total),
                                     (uint8_t)(blue / total)};
                canvas_blend(canvas, x, y, mean, total / (POINTS * POINTS));
            }
        }
    }
}

struct picture {
    const FT_Bitmap *bitmap;
    double scale, left, top; /* the bitmap's upper left corner in the line's coordinates */
};

/* FreeType's colours are blue, green, red, each already multiplied by the coverage behind them. */
static unsigned sample_picture(const void *user, double along, double up, struct color *color)
{
    const struct picture *picture = user;
    double column = (along - picture->left) / picture->scale;
    double row = (picture->top - up) / picture->scale;
    *color = (struct color){0};
    if (column < 0 || row < 0 || column >= picture->bitmap->width || row >= picture->bitmap->rows)
        return 0;
    const unsigned char *pixel =
        picture->bitmap->buffer + (long)row * picture->bitmap->pitch + (long)column * 4;
    unsigned coverage = pixel[3];
    if (coverage)
        *color = (struct color){(uint8_t)(pixel[2] * 255u / coverage),
                                (uint8_t)(pixel[1] * 255u / coverage),
                                (uint8_t)(pixel[0] * 255u / coverage)};
    return coverage;
}

static void draw_picture(struct canvas *canvas, const struct slant *slant, FT_GlyphSlot glyph,
                         double scale)
{
    if (glyph->bitmap.pixel_mode != FT_PIXEL_MODE_BGRA)
        return;
    struct picture picture = {&glyph->bitmap, scale, glyph->bitmap_left * scale,
                              glyph->bitmap_top * scale};
    double right = picture.left + glyph->bitmap.width * scale;
    draw_sampled(canvas, slant, fmax(right, 0), picture.top - glyph->bitmap.rows * scale,
                 picture.top, sample_picture, &picture);
}

static void draw_mask(struct canvas *canvas, FT_GlyphSlot glyph, long x, long y, struct color color)
{
    const FT_Bitmap *bitmap = &glyph->bitmap;
    if (bitmap->pixel_mode != FT_PIXEL_MODE_GRAY)
        return;
    for (long row = 0; row < (long)bitmap->rows; row++)
        for (long column = 0; column < (long)bitmap->width; column++) {
            unsigned coverage = bitmap->buffer[row * bitmap->pitch + column];
            if (coverage)
                canvas_blend(canvas, x + glyph->bitmap_left + column, y - glyph->bitmap_top + row,
                             color, coverage);
        }
}

static void draw_glyph(struct canvas *canvas, const struct slant *slant, struct font_glyph glyph,
                       double size, struct color color)
{
    FT_Face face = glyph.face;
    double scale = set_size(face, size);
    if (scale <= 0)
        return;
    bool is_outline = FT_IS_SCALABLE(face) && !FT_HAS_COLOR(face);
    FT_Fixed cosine = lround(slant->cosine * 65536), sine = lround(slant->sine * 65536);
    FT_Matrix turn = {cosine, -sine, sine, cosine};
    long x = (long)floor(slant->x), y = (long)floor(slant->y);
    FT_Vector fraction = {lround((slant->x - (double)x) * 64),
                          -lround((slant->y - (double)y) * 64)};
    FT_Set_Transform(face, is_outline ? &turn : NULL, is_outline ? &fraction : NULL);
    if (FT_Load_Glyph(face, glyph.index, load_flags(face)) ||
        FT_Render_Glyph(face->glyph, FT_RENDER_MODE_NORMAL))
        return;
    if (face->glyph->bitmap.pixel_mode == FT_PIXEL_MODE_BGRA)
        draw_picture(canvas, slant, face->glyph, scale);
    else
        draw_mask(canvas, face->glyph, x, y, color);
}

struct box {
    double left, right, bottom, top, line;
    struct color color;
};

static unsigned sample_box(const void *user, double along, double up, struct color *color)
{
    const struct box *box = user;
    *color = box->color;
    bool inside = along > box->left && along < box->right && up > box->bottom && up < box->top;
    bool hole = along > box->left + box->line && along < box->right - box->line &&
                up > box->bottom + box->line && up < box->top - box->line;
    return inside && !hole ? 255 : 0;
}

/* What a box says: the code, and for a control picture that of the control it stands for. */
static unsigned box_code(int32_t code)
{
    if (code == DELETE_PICTURE)
        return 0x7f;
    bool is_picture = code >= FIRST_CONTROL_PICTURE && code < FIRST_CONTROL_PICTURE + 0x20;
    return (unsigned)(is_picture ? code - FIRST_CONTROL_PICTURE : code);
}

/* A character that no font has: its code in two lines of hexadecimal digits inside a frame. */
static void draw_box(struct canvas *canvas, const struct slant *slant, struct font_set *fonts,
                     int32_t code, double size, struct color color)
{
    struct box box = {.left = 0.05 * size,
                      .right = 0.75 * size,
                      .bottom = -0.18 * size,
                      .top = 0.82 * size,
                      .line = fmax(0.06 * size, 1),
                      .color = color};
    draw_sampled(canvas, slant, box.right + 1, box.bottom - 1, box.top + 1, sample_box, &box);
    char digits[12];
    int count = snprintf(digits, sizeof digits, code > 0xffff ? "%06X" : "%04X", box_code(code));
    double small = 0.38 * size * 4 / (count + (count == 4 ? 0 : 0.5));
    for (int i = 0; i < count; i++) {
        int in_line = i % (count / 2);
        double step = (box.right - box.left - 3 * box.line) / (count / 2);
        struct slant place = slant_moved(slant, box.left + 1.5 * box.line + (in_line + 0.15) * step,
                                         i < count / 2 ? 0.40 * size : -0.05 * size);
        struct font_glyph glyph = font_set_find(fonts, digits[i]);
        if (glyph.face)
            draw_glyph(canvas, &place, glyph, small, color);
    }
}

void text_line_draw(const struct text_line *line, struct canvas *canvas, double x, double y,
                    int angle, struct color color)
{
    const double degree = 3.14159265358979323846 / 180;
    struct slant pen = {x, y, cos(angle * degree), sin(angle * degree)};
    for (size_t i = 0; i < line->count; i++) {
        const struct placed_glyph *placed = &line->glyphs[i];
        if (placed->glyph.face)
            draw_glyph(canvas, &pen, placed->glyph, line->size, color);
        else
            draw_box(canvas, &pen, line->fonts, placed->code, line->size, color);
        pen = slant_moved(&pen, placed->advance, 0);
    }
}
