/* A treebank, and the table that is made of it. */
#include <string.h>

#include "fuzz_target.h"
#include "probe/dependency_scores.h"

/* Every word of a sentence hangs on another one of it, or on the root. */
static void check_sentence(const struct treebank *treebank,
                           const struct treebank_sentence *sentence)
{
    REQUIRE(sentence->count > 0 && sentence->first + sentence->count <= treebank->word_count);
    struct attn_buffer text = {0};
    treebank_add_text(treebank, sentence, &text);
    REQUIRE(text.size >= 2 * sentence->count - 1);
    attn_buffer_release(&text);
    for (size_t n = 0; n < sentence->count; n++) {
        const struct treebank_word *word = &treebank->words[sentence->first + n];
        REQUIRE(word->head <= sentence->count && word->head != n + 1);
        REQUIRE(word->form[0] && word->relation[0] && !strchr(word->relation, ':'));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct attn_error error;
    struct treebank treebank;
    struct dependency_scores scores;
    if (!treebank_read(&treebank, fuzz_write("a.conllu", data, size), &error))
        return 0;
    REQUIRE(treebank.sentence_count > 0);
    size_t words = 0;
    for (size_t n = 0; n < treebank.sentence_count; n++) {
        check_sentence(&treebank, &treebank.sentences[n]);
        REQUIRE(treebank.sentences[n].first == words);
        words += treebank.sentences[n].count;
    }
    REQUIRE(words == treebank.word_count);
    if (dependency_scores_create(&scores, &treebank, 1, 1, &error)) {
        for (size_t n = 0; n < scores.relation_count; n++)
            REQUIRE(scores.relations[n].offset_correct <= scores.relations[n].words);
        dependency_scores_release(&scores);
    }
    treebank_release(&treebank);
    return 0;
}
