/* A map as JSON describes it, for draw_map.
 *
 *   {"model", "text", "pair", "measure", "renormalized", "rows", "columns",
 *    "row_labels": [hex], "column_labels": [hex],
 *    "row_special": [indices], "column_special": [indices],
 *    "panels": [{"layer", "head", "weights": [row-major; null is NaN], "same_as"}],
 *    "sharpness",
 *    "links_a_row", then panels have "links": [[[column, weight], …] of each row],
 *    "vectors": {"layers", "heads", "key_heads", "d", "tokens", "scale", "causal",
 *                "labels": [hex], "row_tokens", "row_token_counts",
 *                "queries", "keys", "values": [numbers; null is NaN]}}
 *
 * Labels, text and pair are bytes in hexadecimal, so that a test can pass what is not UTF-8.
 *
 * Where weights or links are left out: those of the panel with the index "same_as", if it stands
 * before; else those that the vectors make, if there are any and each row is one token; else random
 * rows that sum to 1, flat at sharpness 0, as attention has them at 5, the default, and nearly one
 * weight each at 200. Tokens without labels have the rows', row_tokens are 0, 1, 2 … and
 * row_token_counts 1; queries, keys and values random, of −2 to 2. */
#ifndef ATTN_TESTS_DRAW_MAP_REQUEST_H
#define ATTN_TESTS_DRAW_MAP_REQUEST_H

#include <jansson.h>

#include "draw/attention_map.h"

/* Ends the program where there is no memory, or a number is missing. What it allocates lives as
 * long as the program. */
void map_request_read(const json_t *request, struct attention_map *map);

#endif
