#include "text/encoding_truncate.h"

#include <string.h>

void encoding_truncate(struct encoding *encoding, size_t positions)
{
    size_t count = encoding->token_count;
    size_t behind = 0;
    while (behind < positions && encoding->tokens[count - 1 - behind].word == TOKEN_NO_WORD)
        behind++;
    memmove(encoding->tokens + positions - behind, encoding->tokens + count - behind,
            behind * sizeof *encoding->tokens);
    encoding->token_count = positions;
}
