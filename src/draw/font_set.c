#include "draw/font_set.h"

#include <fontconfig/fontconfig.h>
#include <stdlib.h>

struct font_set {
    FcConfig *config;
    FcFontSet *sorted; /* the best first */
    FT_Library library;
    FT_Face *faces; /* [sorted->nfont], opened when first used */
    bool *broken;   /* [sorted->nfont]: could not be opened */
};

static FcFontSet *sort_fonts(FcConfig *config)
{
    FcPattern *pattern = FcNameParse((const FcChar8 *)"sans-serif");
    if (!pattern)
        return NULL;
    FcResult result;
    FcConfigSubstitute(config, pattern, FcMatchPattern);
    FcDefaultSubstitute(pattern);
    FcFontSet *sorted = FcFontSort(config, pattern, FcTrue, NULL, &result);
    FcPatternDestroy(pattern);
    return sorted;
}

bool font_set_open(struct font_set **fonts, struct attn_error *error)
{
    *fonts = NULL;
    struct font_set *set = calloc(1, sizeof *set);
    if (!set)
        return attn_error_memory(error);
    set->config = FcInitLoadConfigAndFonts();
    set->sorted = set->config ? sort_fonts(set->config) : NULL;
    if (!set->sorted || set->sorted->nfont <= 0) {
        font_set_close(set);
        return attn_error_set(error, "a PNG needs a font and none was found: install one, such as "
                                     "Debian's package fonts-dejavu-core, or draw an .svg");
    }
    size_t count = (size_t)set->sorted->nfont;
    set->faces = calloc(count, sizeof *set->faces);
    set->broken = calloc(count, sizeof *set->broken);
    if (!set->faces || !set->broken || FT_Init_FreeType(&set->library)) {
        font_set_close(set);
        return attn_error_memory(error);
    }
    *fonts = set;
    return true;
}

void font_set_close(struct font_set *fonts)
{
    if (!fonts)
        return;
    for (int i = 0; fonts->faces && i < fonts->sorted->nfont; i++)
        if (fonts->faces[i])
            FT_Done_Face(fonts->faces[i]);
    if (fonts->library)
        FT_Done_FreeType(fonts->library);
    if (fonts->sorted)
        FcFontSetDestroy(fonts->sorted);
    if (fonts->config)
        FcConfigDestroy(fonts->config);
    free(fonts->faces);
    free(fonts->broken);
    free(fonts);
}

static FT_Face open_face(struct font_set *fonts, int i)
{
    if (fonts->faces[i] || fonts->broken[i])
        return fonts->faces[i];
    FcChar8 *file;
    int index = 0;
    FcPattern *font = fonts->sorted->fonts[i];
    fonts->broken[i] = true;
    if (FcPatternGetString(font, FC_FILE, 0, &file) != FcResultMatch)
        return NULL;
    FcPatternGetInteger(font, FC_INDEX, 0, &index);
    if (FT_New_Face(fonts->library, (const char *)file, index, &fonts->faces[i])) {
        fonts->faces[i] = NULL;
        return NULL;
    }
    fonts->broken[i] = false;
    return fonts->faces[i];
}

struct font_glyph font_set_find(struct font_set *fonts, int32_t code)
{
    for (int i = 0; i < fonts->sorted->nfont; i++) {
        FcCharSet *characters;
        if (FcPatternGetCharSet(fonts->sorted->fonts[i], FC_CHARSET, 0, &characters) !=
                FcResultMatch ||
            !FcCharSetHasChar(characters, (FcChar32)code))
            continue;
        FT_Face face = open_face(fonts, i);
        FT_UInt index = face ? FT_Get_Char_Index(face, (FT_ULong)code) : 0;
        if (index)
            return (struct font_glyph){face, index};
    }
    return (struct font_glyph){NULL, 0};
}
