/* Blocks of GGML's format (gguf.h), 32 or 256 weights with their scales, as floats. The kernels
 * have an unpacking of their own for speed; this one is plain, and reads whole tensors. */
#ifndef ATTN_FORMAT_STORED_BLOCKS_H
#define ATTN_FORMAT_STORED_BLOCKS_H

/* One block, into as many floats as stored_type_block tells. */
typedef void stored_block_decoder(const unsigned char *block, float *floats);

stored_block_decoder stored_block_q8_0;
stored_block_decoder stored_block_q4_0;
stored_block_decoder stored_block_q4_1;
stored_block_decoder stored_block_q5_0;
stored_block_decoder stored_block_q5_1;
stored_block_decoder stored_block_q4_k;
stored_block_decoder stored_block_q5_k;
stored_block_decoder stored_block_q6_k;

#endif
