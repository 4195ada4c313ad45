// What is shown of a map: words that are not hidden, rows divided by what is left of them, links
// strong enough. Made panel by panel, when a view asks for it.

class Shown {
  // filter: {hideSpecial, hideFirst, renormalize, least, linksAWord (0: all)}
  constructor(page, filter) {
    this.page = page;
    this.filter = filter;
    this.columnIsHidden = this.hidden(page.columnIsSpecial, true);
    this.rowIsHidden = this.hidden(page.rowIsSpecial, page.isSquare);
    this.rows = this.visible(this.rowIsHidden);
    this.columns = this.visible(this.columnIsHidden);
    this.panels = new Map();
    this.links = new Map();
  }

  hidden(special, hasFirst) {
    const hidden = this.filter.hideSpecial ? special.slice() : new Uint8Array(special.length);
    if (this.filter.hideFirst && hasFirst && hidden.length) hidden[0] = 1;
    return hidden;
  }

  visible(hidden) {
    const visible = new Uint32Array(hidden.length - hidden.reduce((sum, flag) => sum + flag, 0));
    let count = 0;
    hidden.forEach((flag, i) => { if (!flag) visible[count++] = i; });
    return visible;
  }

  // What a row's weights are multiplied by.
  factor(panel, row) {
    if (!this.filter.renormalize) return 1;
    const [from, to] = this.page.linksOf(panel, row);
    let sum = 0;
    for (let link = from; link < to; link++) {
      const weight = this.page.weightAt(link);
      if (weight > 0 && !this.columnIsHidden[this.page.columnAt(link, from)]) sum += weight;
    }
    return sum > 0 ? 1 / sum : 1;
  }

  // Whatever its strength.
  weight(panel, row, column) {
    const weight = this.page.weight(panel, row, column);
    return weight === NOT_KEPT ? NOT_KEPT : weight * this.factor(panel, row);
  }

  // A panel's links: those of row i are starts[i]..starts[i + 1] of columns and weights; `largest` of all.
  panel(panel) {
    if (!this.panels.has(panel)) this.panels.set(panel, this.makePanel(panel));
    return this.panels.get(panel);
  }

  makePanel(panel) {
    const { page, rowIsHidden, columnIsHidden } = this;
    const { least } = this.filter;
    const room = page.linksOf(panel, page.rows - 1)[1] - page.linksOf(panel, 0)[0];
    const starts = new Uint32Array(page.rows + 1);
    const columns = new Uint16Array(room);
    const weights = new Float32Array(room);
    let count = 0;
    let largest = 0;
    for (let row = 0; row < page.rows; row++) {
      const [from, to] = page.linksOf(panel, row);
      const factor = this.factor(panel, row);
      for (let link = from; link < to && !rowIsHidden[row]; link++) {
        const column = page.columnAt(link, from);
        const weight = page.weightAt(link) * factor;
        if (columnIsHidden[column] || weight <= 0 || weight < least) continue;
        columns[count] = column;
        weights[count++] = weight;
        if (weight > largest) largest = weight;
      }
      starts[row + 1] = count;
    }
    return { starts, columns: columns.subarray(0, count), weights: weights.subarray(0, count), largest };
  }

  // The same with at most filter.linksAWord links a row, the strongest; of equal ones the earlier key.
  strongest(panel) {
    const most = this.filter.linksAWord;
    const all = this.panel(panel);
    if (!most) return all;
    if (!this.links.has(panel)) this.links.set(panel, this.makeStrongest(all, most));
    return this.links.get(panel);
  }

  makeStrongest(all, most) {
    const starts = new Uint32Array(all.starts.length);
    const columns = new Uint16Array(Math.min(all.columns.length, most * (starts.length - 1)));
    const weights = new Float32Array(columns.length);
    let count = 0;
    for (let row = 0; row + 1 < starts.length; row++) {
      const begin = count;
      for (let link = all.starts[row]; link < all.starts[row + 1]; link++) {
        const weight = all.weights[link];
        const column = all.columns[link];
        if (!(weight > 0)) continue;
        let place = count;
        const isBefore = (i) => weights[i] > weight || (weights[i] === weight && columns[i] < column);
        while (place > begin && !isBefore(place - 1)) place--;
        if (place - begin >= most) continue;
        if (count - begin < most) count++;
        weights.copyWithin(place + 1, place, count - 1);
        columns.copyWithin(place + 1, place, count - 1);
        weights[place] = weight;
        columns[place] = column;
      }
      starts[row + 1] = count;
    }
    return { starts, columns: columns.subarray(0, count), weights: weights.subarray(0, count), largest: all.largest };
  }

  // The largest weight shown in these panels, at least something above 0.
  largest(panels) {
    return panels.reduce((largest, panel) => Math.max(largest, this.panel(panel).largest), 0) || this.page.largest;
  }

  // Of whole rows, so that the filter may be set as high as any weight goes.
  largestPossible() {
    return this.filter.renormalize ? 1 : this.page.largest;
  }

  // The words that a word looks at (side "q") or is looked at by ("k"), strongest first:
  // [{index, weight: mean over the panels, parts: its weight in each}].
  ranking(panels, side, index, most) {
    const totals = new Map();
    panels.forEach((panel, place) => {
      this.eachLinkOf(this.panel(panel), side, index, (other, weight) => {
        if (!(weight > 0)) return;
        if (!totals.has(other)) totals.set(other, new Float32Array(panels.length));
        totals.get(other)[place] = weight;
      });
    });
    const ranked = [...totals].map(([other, parts]) => (
      { index: other, parts, weight: parts.reduce((sum, part) => sum + part, 0) / panels.length }));
    return ranked.sort((a, b) => b.weight - a.weight || a.index - b.index).slice(0, most);
  }

  eachLinkOf({ starts, columns, weights }, side, index, visit) {
    if (side === "q") {
      for (let link = starts[index]; link < starts[index + 1]; link++) visit(columns[link], weights[link]);
      return;
    }
    for (let row = 0; row + 1 < starts.length; row++)
      for (let link = starts[row]; link < starts[row + 1]; link++)
        if (columns[link] === index) visit(row, weights[link]);
  }

  // The largest weight in each square of a coarser grid, for a small picture.
  reduced(panel, height, width) {
    const { starts, columns, weights } = this.panel(panel);
    const small = new Float32Array(height * width);
    const lines = this.squares(this.rows, this.page.rows, height);
    const places = this.squares(this.columns, this.page.columns, width);
    for (const row of this.rows)
      for (let link = starts[row]; link < starts[row + 1]; link++) {
        const at = lines[row] * width + places[columns[link]];
        if (Number.isNaN(weights[link]) || weights[link] > small[at]) small[at] = weights[link];
      }
    return small;
  }

  squares(visible, count, size) {
    const squares = new Uint16Array(count);
    visible.forEach((index, place) => { squares[index] = Math.floor((place * size) / visible.length); });
    return squares;
  }
}
