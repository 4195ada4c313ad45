#include "draw/strongest.h"

#include <math.h>
#include <string.h>

static const double held_share = 0.7;

/* In the order of the weights: what is not a number first; 0 for what is no link. */
static uint32_t strength_of(float weight)
{
    const uint32_t sign = UINT32_C(1) << 31, infinity = UINT32_C(0x7f800000);
    uint32_t bits;
    memcpy(&bits, &weight, sizeof bits);
    if ((bits & ~sign) >= infinity)
        return UINT32_MAX;
    return bits & sign ? 0 : bits; /* those of positive floats are in the order of the floats */
}

/* What a weight adds to a mass. */
static double countable(float weight)
{
    uint32_t strength = strength_of(weight);
    return strength && strength != UINT32_MAX ? (double)weight : 0.0;
}

/* A column with its strength: keys are in the order of their links, the strongest largest. */
static uint64_t key_of(uint32_t strength, size_t column)
{
    return (uint64_t)strength << 32 | (UINT32_MAX - (uint32_t)column);
}

static uint32_t column_of(uint64_t key)
{
    return UINT32_MAX - (uint32_t)key;
}

/* heap[0] is the weakest. Puts a key in the place of the one at the root. */
static void sink(uint64_t *heap, size_t size, uint64_t key)
{
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < size; at = child) {
        if (child + 1 < size && heap[child + 1] < heap[child])
            child++;
        if (heap[child] > key)
            break;
        heap[at] = heap[child];
    }
    heap[at] = key;
}

static void rise(uint64_t *heap, size_t at, uint64_t key)
{
    for (size_t parent; at > 0 && heap[parent = (at - 1) / 2] > key; at = parent)
        heap[at] = heap[parent];
    heap[at] = key;
}

/* The strongest keys of a row, strongest first, and its mass. */
static size_t select_keys(const float *weights, size_t columns, size_t limit, uint64_t *heap,
                          double *mass)
{
    size_t size = 0;
    *mass = 0;
    for (size_t column = 0; column < columns; column++) {
        uint32_t strength = strength_of(weights[column]);
        *mass += countable(weights[column]);
        if (!strength)
            continue;
        uint64_t key = key_of(strength, column);
        if (size < limit) {
            rise(heap, size, key);
            size++;
        } else if (key > heap[0]) {
            sink(heap, size, key);
        }
    }
    for (size_t rest = size; rest > 1; rest--) {
        uint64_t weakest = heap[0];
        sink(heap, rest - 1, heap[rest - 1]);
        heap[rest - 1] = weakest;
    }
    return size;
}

/* Appends a link unless the row has enough of them. */
static bool add_link(struct strongest *strongest, struct map_link link)
{
    bool is_number = strength_of(link.weight) != UINT32_MAX;
    if (is_number && strongest->held >= held_share * strongest->mass)
        return false;
    strongest->links[strongest->count++] = link;
    strongest->held += countable(link.weight);
    return true;
}

static void find_weights(const float *weights, size_t columns, size_t limit,
                         struct strongest *strongest)
{
    uint64_t keys[STRONGEST_LIMIT];
    size_t count = select_keys(weights, columns, limit, keys, &strongest->mass);
    for (size_t i = 0; i < count; i++) {
        uint32_t column = column_of(keys[i]);
        if (!add_link(strongest, (struct map_link){column, weights[column]}))
            return;
    }
}

static void find_links(const struct map_link *links, size_t count, size_t limit,
                       struct strongest *strongest)
{
    double sum = 0;
    size_t given = 0;
    for (; given < count && strength_of(links[given].weight); given++)
        sum += countable(links[given].weight);
    strongest->mass = fmax(sum, 1);
    for (size_t i = 0; i < given && i < limit; i++)
        if (!add_link(strongest, links[i]))
            return;
}

void strongest_find(const struct attention_map *map, const struct map_panel *panel, size_t row,
                    size_t limit, struct strongest *strongest)
{
    strongest->count = 0;
    strongest->mass = strongest->held = 0;
    if (map->links_a_row)
        find_links(panel->links + row * map->links_a_row, map->links_a_row, limit, strongest);
    else
        find_weights(panel->weights + row * map->columns, map->columns, limit, strongest);
}
