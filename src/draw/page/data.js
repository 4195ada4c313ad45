// What a page knows of its map (page_data.h), decoded once into typed arrays: no object a weight.

const LARGEST_CODE = 65534;
const NOT_A_NUMBER_CODE = 65535;
const MEAN = -1; // in place of a layer or head
const NOT_KEPT = undefined; // in place of a weight that the page does not hold

class PageData {
  constructor(data) {
    this.data = data;
    this.rowLabels = data.rows;
    this.isSquare = !data.columns; // the columns are the rows' words
    this.columnLabels = data.columns || data.rows;
    this.rows = this.rowLabels.length;
    this.columns = this.columnLabels.length;
    this.panels = data.panels;
    this.largest = data.largest;
    this.rowIsSpecial = this.flags(this.rows, data.rowSpecial);
    this.columnIsSpecial = this.flags(this.columns, data.columnSpecial);
    this.hasSpecial = this.rowIsSpecial.includes(1) || this.columnIsSpecial.includes(1);
    this.decode(this.bytes(data.weights));
    this.places = new Map(this.panels.map(({ layer, head }, panel) => [`${layer} ${head}`, panel]));
  }

  flags(count, places) {
    const flags = new Uint8Array(count);
    for (const place of places || []) flags[place] = 1;
    return flags;
  }

  bytes(base64) {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
  }

  // codes[i] is the weight of column linkColumns[i], or where all weights are held of column i − start;
  // the links of line panel · rows + row begin at starts[line].
  decode(bytes) {
    const lines = this.panels.length * this.rows;
    this.starts = new Uint32Array(lines + 1);
    if (this.data.strongest === 0) {
      this.codes = new Uint16Array(bytes.length / 2);
      for (let i = 0; i < this.codes.length; i++) this.codes[i] = bytes[2 * i] | (bytes[2 * i + 1] << 8);
      for (let line = 0; line <= lines; line++) this.starts[line] = line * this.columns;
      return;
    }
    const links = (bytes.length - lines) / 4;
    this.codes = new Uint16Array(links);
    this.linkColumns = new Uint16Array(links);
    let at = 0;
    let link = 0;
    for (let line = 0; line < lines; line++) {
      const end = link + bytes[at++];
      for (; link < end; link++, at += 4) {
        this.linkColumns[link] = bytes[at] | (bytes[at + 1] << 8);
        this.codes[link] = bytes[at + 2] | (bytes[at + 3] << 8);
      }
      this.starts[line + 1] = link;
    }
  }

  // −1 where the page has no such panel.
  panelIndex(layer, head) {
    return this.places.get(`${layer} ${head}`) ?? -1;
  }

  // Links of a row are the places from..to−1 of columnAt and weightAt.
  linksOf(panel, row) {
    const line = panel * this.rows + row;
    return [this.starts[line], this.starts[line + 1]];
  }

  columnAt(link, from) {
    return this.linkColumns ? this.linkColumns[link] : link - from;
  }

  weightAt(link) {
    const code = this.codes[link];
    return code === NOT_A_NUMBER_CODE ? NaN : (code / LARGEST_CODE) * this.largest;
  }

  weight(panel, row, column) {
    const [from, to] = this.linksOf(panel, row);
    if (!this.linkColumns) return this.weightAt(from + column);
    const place = this.linkColumns.subarray(from, to).indexOf(column);
    return place < 0 ? NOT_KEPT : this.weightAt(from + place);
  }
}

// "layer 4 head 7", for ears and titles; "L4H7", "L4", "all", for the fragment and narrow places.
function spellPanel({ layer, head }) {
  if (layer === MEAN) return head === MEAN ? "mean of all heads" : `head ${head}, mean over layers`;
  return head === MEAN ? `layer ${layer}, mean of its heads` : `layer ${layer} head ${head}`;
}

function codePanel({ layer, head }) {
  if (layer === MEAN && head === MEAN) return "all";
  return (layer === MEAN ? "" : `L${layer}`) + (head === MEAN ? "" : `H${head}`);
}

// A weight for eyes: as many digits as tell it from others.
function spellWeight(weight) {
  if (Number.isNaN(weight)) return "not a number";
  return weight > 0 && weight < 0.0005 ? weight.toExponential(1) : weight.toFixed(3);
}
