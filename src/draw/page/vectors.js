// The queries, keys and values of page_data.h, and what attention makes of them: the numbers that the model
// computed with, rounded to 16 bits.

const NOT_A_NUMBER_IN_VECTOR = -32768; // in place of a code

class HeadVectors {
  constructor(vectors) {
    Object.assign(this, vectors);
    this.decoded = {}; // each when it is first asked for
  }

  decode(kind) {
    const { largest, codes } = this[kind];
    const text = atob(codes);
    const bytes = new DataView(Uint8Array.from(text, (sign) => sign.charCodeAt(0)).buffer);
    const numbers = new Float32Array(text.length / 2);
    for (let i = 0; i < numbers.length; i++) {
      const code = bytes.getInt16(2 * i, true);
      numbers[i] = code === NOT_A_NUMBER_IN_VECTOR ? NaN : (code / 32767) * largest;
    }
    return numbers;
  }

  // kind: "queries", "keys" or "values".
  of(kind, layer, head, token) {
    this.decoded[kind] ??= this.decode(kind);
    const heads = kind === "queries" ? this.heads : this.keyHeads;
    const mine = kind === "queries" ? head : Math.floor((head * this.keyHeads) / this.heads);
    const at = ((layer * heads + mine) * this.tokens.length + token) * this.d;
    return this.decoded[kind].subarray(at, at + this.d);
  }

  // All that attention does for one query: scores, the scaled ones, exp(s − m)/l, and the sum of values.
  attend(layer, head, token) {
    const query = this.of("queries", layer, head, token);
    const count = this.causal ? token + 1 : this.tokens.length;
    const scores = Array.from({ length: count }, (_, key) => dotProduct(query, this.of("keys", layer, head, key)));
    const scaled = scores.map((score) => score * this.scale);
    const largest = scaled.reduce((a, b) => Math.max(a, b), -Infinity);
    const sum = scaled.reduce((total, score) => total + Math.exp(score - largest), 0);
    const weights = scaled.map((score) => Math.exp(score - largest) / sum);
    const output = new Float32Array(this.d);
    weights.forEach((weight, key) => {
      this.of("values", layer, head, key).forEach((value, i) => { output[i] += weight * value; });
    });
    return { query, scores, scaled, largest, sum, weights, output };
  }

  tokensOf(row) {
    return Array.from({ length: this.rowTokenCounts[row] }, (_, i) => this.rowTokens[row] + i);
  }

  // The weight between two words as the page has it: pieces of the key added, those of the query averaged.
  // Where rows were divided by their sums, `rows` says over which words; otherwise it is null.
  wordWeight(layer, head, row, column, rows) {
    const pieces = this.tokensOf(row);
    let weight = 0;
    let whole = 0;
    for (const piece of pieces) {
      const { weights } = this.attend(layer, head, piece);
      const to = (word) => this.tokensOf(word).reduce((sum, key) => sum + (weights[key] ?? 0), 0);
      weight += to(column);
      if (rows) for (let word = 0; word < rows; word++) whole += to(word);
    }
    return weight / (rows ? whole : pieces.length);
  }
}

function dotProduct(a, b) {
  return a.reduce((sum, number, i) => sum + number * b[i], 0);
}
