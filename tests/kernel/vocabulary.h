/* The tests of one vector vocabulary, compiled once an instruction set with its flags. */
#ifndef ATTN_TESTS_VOCABULARY_H
#define ATTN_TESTS_VOCABULARY_H

/* Each runs tests of every function of its vocabulary, named after it; only where the CPU has the
 * instruction set. */
void vocabulary_avx2(void);
void vocabulary_avx512(void);
void vocabulary_neon(void);

#endif
