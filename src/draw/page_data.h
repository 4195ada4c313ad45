/* What a page knows of its map, as JSON: the contract between C, which writes it, and page/, which
 * shows it.
 *
 *   "model"          string
 *   "text", "pair"   strings as label_show gives them, or null
 *   "measure"        string: what a number is; null for an attention weight
 *   "renormalized"   whether rows were divided by their sums
 *   "rows"           [labels], as label_show gives them
 *   "columns"        [labels], or null where they are the rows'; at most 65,536
 *   "rowSpecial"     [indices of rows] that are tokens which the model adds; "columnSpecial" alike
 *   "panels"         [{"layer", "head"}], −1 for a mean, in the order of the weights
 *   "largest"        the weight of code 65534
 *   "hasNotANumber"  whether a weight is NaN or infinite (code 65535)
 *   "strongest"      0: all weights; else each row holds so many links at most
 *   "share"          the part of all weight that the page holds, 0..1
 *   "weights"        base64 (RFC 4648, padded) of, panel by panel and row by row, little-endian:
 *                      strongest = 0: a code of two bytes a column
 *                      else: a byte, the number of links, and for each the column (two bytes) and
 *                      the code (two bytes), strongest first: those that hold 70 % of the row, but
 *                      at most "strongest"; what is not a number goes before all
 *   "light", "dark"  the colours of a weight's 256 levels and of what is not a number, six
 *                    hexadecimal digits each
 *   "vectors"        null (none are known, or they are too many for a page: then "vectorsLeftOut"
 *                    is true), or
 *                    {"layers", "heads", "keyHeads", "d", "scale", "causal",
 *                     "tokens": [labels],
 *                     "rowTokens": [first token of each row], "rowTokenCounts": [how many],
 *                     "queries", "keys", "values": {"largest": x, "codes": base64 of signed
 *                     two-byte integers, number = code / 32767 · largest, −32768: not a number;
 *                     [layers][heads or keyHeads][tokens][d]}}
 *
 * It may stand inside a script element: nothing in it ends one.
 */
#ifndef ATTN_DRAW_PAGE_DATA_H
#define ATTN_DRAW_PAGE_DATA_H

#include "draw/attention_map.h"
#include "draw/map_check.h"

/* Appends the object, of at most `budget` bytes: all weights where they fit, and the vectors where
 * these fit beside them; else links, cut down to what is left, and vectors beside them where they
 * are few. Refuses what map_check_links does, vectors that do not fit each other and, with an
 * estimate, a map of which even one link a row is more; `out` then holds a part. */
bool page_data_add(const struct attention_map *map, size_t budget, struct attn_buffer *out,
                   struct attn_error *error);

#endif
