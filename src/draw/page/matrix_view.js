// One head as a matrix: rows are queries from the top down, columns are keys.

const CELL_LEAST = 3; // pixels, unless asked for less
const CELL_MOST = 44;
const CELL_SLANTED = 22; // from here on labels of columns slant
const CANVAS_MOST = 4096; // pixels: of more words several share one
const LABEL_ROOM = 13; // a line of labels: of narrower cells only some have one

class MatrixView {
  constructor(app, section) {
    this.app = app;
    this.section = section;
    this.build();
    this.listen();
  }

  build() {
    const part = (className, ...children) => buildElement("div", { className }, ...children);
    this.canvas = buildElement("canvas", { className: "cells" });
    this.lines = part("lines");
    this.rowBand = part("band row-band");
    this.columnBand = part("band column-band");
    this.field = part("field", this.canvas, this.lines, this.rowBand, this.columnBand);
    this.field.tabIndex = 0;
    this.field.setAttribute("role", "application");
    this.field.setAttribute("aria-roledescription", "matrix");
    this.rowList = part("rows");
    this.columnList = part("columns");
    for (const list of [this.rowList, this.columnList]) list.setAttribute("aria-hidden", "true");
    this.scroller = part("scroller", part("sheet",
      buildElement("p", { className: "axis column-axis", textContent: "key: the word it looks at" }),
      buildElement("p", { className: "axis row-axis", textContent: "query: the word that looks" }),
      part("corner"), this.columnList, this.rowList, this.field));
    this.section.append(this.scroller);
  }

  listen() {
    this.field.addEventListener("pointermove", (event) => {
      const cell = this.cellAt(event);
      this.app.hover(cell && { side: "q", index: cell.row }, cell && cell.column);
    });
    this.field.addEventListener("pointerleave", () => this.app.hover(null));
    this.field.addEventListener("click", (event) => this.toggle(this.cellAt(event)));
    this.field.addEventListener("keydown", (event) => this.press(event));
  }

  // What is seen.

  render() {
    const { app } = this;
    const { shown, page } = app;
    this.panel = app.state.active;
    this.largest = shown.largest([this.panel]);
    this.placeOf = { q: this.places(shown.rows, page.rows), k: this.places(shown.columns, page.columns) };
    const width = Math.min(CANVAS_MOST, Math.max(1, shown.columns.length));
    const height = Math.min(CANVAS_MOST, Math.max(1, shown.rows.length));
    Object.assign(this.canvas, { width, height });
    app.colors.paint(this.canvas, shown.reduced(this.panel, height, width), this.largest);
    this.field.setAttribute("aria-label", `Attention of ${spellPanel(page.panels[this.panel])}, ` +
      `${shown.rows.length} queries by ${shown.columns.length} keys: arrow keys move from cell to cell, ` +
      "Page Up and Page Down from head to head");
    app.readOut.showLegend(this.largest);
    this.resize();
    if (app.state.word && !this.isScrolled) bringIntoSight(this.scroller, this.rowBand, this.columnBand);
    this.isScrolled = true;
  }

  places(visible, count) {
    const places = new Int32Array(count).fill(-1);
    visible.forEach((index, place) => { places[index] = place; });
    return places;
  }

  resize() {
    const { rows, columns } = this.app.shown;
    const room = Math.min(this.section.clientWidth - this.labelRoom() - 64, 860);
    const fit = Math.floor(room / Math.max(rows.length, columns.length, 1));
    this.cell = this.app.state.zoom || Math.max(CELL_LEAST, Math.min(CELL_MOST, fit));
    this.app.controls.showZoom(this.cell);
    const { style } = this.section;
    style.setProperty("--cell", `${this.cell}px`);
    style.setProperty("--label-size", `${Math.max(10, Math.min(13, this.cell * 0.8))}px`);
    this.canvas.style.width = `${columns.length * this.cell}px`;
    this.canvas.style.height = `${rows.length * this.cell}px`;
    this.drawLines();
    this.placeLabels();
    this.showWord(this.app.chosen);
  }

  // The widest label of a row, before it stands.
  labelRoom() {
    const context = document.createElement("canvas").getContext("2d");
    context.font = getComputedStyle(this.section).font;
    let widest = 0;
    for (const index of this.app.shown.rows)
      widest = Math.max(widest, context.measureText(this.app.label({ side: "q", index })).width);
    return Math.min(widest, 0.24 * innerWidth, 210);
  }

  drawLines() {
    const width = this.cell >= 20 ? 2 : this.cell >= 12 ? 1 : 0;
    const line = `var(--surface) ${width}px, transparent ${width}px`;
    const { style } = this.lines;
    style.backgroundImage = width ? `linear-gradient(90deg, ${line}), linear-gradient(${line})` : "none";
    style.backgroundSize = `${this.cell}px ${this.cell}px`;
    style.backgroundPosition = `${-width / 2}px ${-width / 2}px`;
  }

  // Labels stand at every so-manieth row and column, and at the chosen ones.
  placeLabels() {
    const { rows, columns } = this.app.shown;
    const every = Math.max(1, Math.ceil(LABEL_ROOM / this.cell));
    this.chosenLabels = {};
    const fill = (list, side, visible) => {
      const labels = [];
      for (let place = 0; place < visible.length; place += every)
        labels.push(this.buildLabelAt(side, visible[place], place));
      this.chosenLabels[side] = this.buildLabelAt(side, visible[0] ?? 0, 0);
      this.chosenLabels[side].classList.add("current");
      this.chosenLabels[side].hidden = true;
      list.replaceChildren(...labels, this.chosenLabels[side]);
      return labels;
    };
    this.columnList.classList.toggle("slanted", this.cell >= CELL_SLANTED);
    const widest = (labels) => labels.reduce((widest, label) => Math.max(widest, label.firstChild.offsetWidth), 0);
    const rowLabels = fill(this.rowList, "q", rows);
    const columnLabels = fill(this.columnList, "k", columns);
    this.rowList.style.width = `${widest(rowLabels) + 10}px`;
    this.rowList.style.height = this.canvas.style.height;
    this.sizeColumnList(columnLabels);
  }

  sizeColumnList(labels) {
    const { style } = this.columnList;
    const isSlanted = this.cell >= CELL_SLANTED;
    let right = this.app.shown.columns.length * this.cell;
    let height = 0;
    labels.forEach(({ firstChild: text }, column) => {
      const length = isSlanted ? (text.offsetWidth + text.offsetHeight) * Math.SQRT1_2 : text.offsetWidth;
      height = Math.max(height, length);
      if (isSlanted) right = Math.max(right, (column + 0.55) * this.cell + length);
    });
    style.width = `${Math.ceil(right)}px`;
    style.height = `${Math.ceil(height) + 8}px`;
  }

  // The first label of narrow cells is not cut.
  middle(place) {
    return `${Math.max(LABEL_ROOM / 2, (place + 0.5) * this.cell)}px`;
  }

  buildLabelAt(side, index, place) {
    const label = buildElement("div", { className: "label" }, buildLabel(this.app.label({ side, index })));
    label.dataset.place = index;
    label.style[side === "q" ? "top" : "left"] = this.middle(place);
    return label;
  }

  showWord(chosen) {
    const row = chosen && chosen.side === "q" ? this.placeOf.q[chosen.index] : -1;
    const column = !chosen ? -1 : chosen.side === "k" ? this.placeOf.k[chosen.index] : this.placeOf.k[chosen.key] ?? -1;
    this.rowBand.hidden = !(row >= 0);
    this.columnBand.hidden = !(column >= 0);
    this.rowBand.style.top = `${row * this.cell}px`;
    this.columnBand.style.left = `${column * this.cell}px`;
    this.showLabel("q", row, this.app.shown.rows, "top");
    this.showLabel("k", column, this.app.shown.columns, "left");
  }

  showLabel(side, place, visible, edge) {
    const label = this.chosenLabels[side];
    label.hidden = !(place >= 0);
    if (label.hidden) return;
    label.style[edge] = this.middle(place);
    label.firstChild.textContent = this.app.label({ side, index: visible[place] });
  }

  // The chosen cell.

  cellAt(event) {
    const area = this.canvas.getBoundingClientRect();
    const { rows, columns } = this.app.shown;
    const row = rows[Math.floor((event.clientY - area.top) / this.cell)];
    const column = columns[Math.floor((event.clientX - area.left) / this.cell)];
    return row === undefined || column === undefined ? null : { row, column };
  }

  toggle(cell) {
    const { word, key } = this.app.state;
    const isSame = cell && word && word.side === "q" && word.index === cell.row && key === cell.column;
    if (!cell || isSame) this.app.lock(null);
    else this.app.lock({ side: "q", index: cell.row }, cell.column);
  }

  press(event) {
    const { rows, columns } = this.app.shown;
    const moves = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      Home: [0, -columns.length], End: [0, columns.length], Enter: [0, 0],
    };
    const heads = { PageUp: -1, PageDown: 1 };
    const zooms = { "+": 1.25, "-": 0.8 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in zooms)
      this.app.update({ zoom: Math.max(ZOOM_LEAST, Math.min(ZOOM_MOST, Math.round(this.cell * zooms[event.key]))) });
    else if (event.key in heads) this.stepHead(heads[event.key]);
    else if (event.key in moves && rows.length && columns.length) this.move(...moves[event.key]);
    else return;
    event.preventDefault();
  }

  stepHead(step) {
    const next = this.panel + step;
    if (next < 0 || next >= this.app.page.panels.length) return;
    this.app.update({ heads: [next] });
    this.app.announce(spellPanel(this.app.page.panels[next]));
  }

  move(down, right) {
    const { rows, columns } = this.app.shown;
    const { word, key } = this.app.state;
    const inside = (place, count) => Math.max(0, Math.min(count - 1, place));
    const hasCell = word && word.side === "q" && key !== null;
    const row = hasCell ? this.placeOf.q[word.index] + down : 0;
    const column = hasCell ? this.placeOf.k[key] + right : 0;
    const cell = { row: rows[inside(row, rows.length)], column: columns[inside(column, columns.length)] };
    this.app.lock({ side: "q", index: cell.row }, cell.column);
    this.app.announce(this.spellCell(cell));
    for (const band of [this.rowBand, this.columnBand]) band.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  takeFocus() {
    this.field.focus();
  }

  // The cell of the chosen word and this one.
  reach({ side, index }) {
    const { chosen } = this.app;
    if (side === "k" && chosen && chosen.side === "q") this.app.lock({ side: "q", index: chosen.index }, index);
    else this.app.lock({ side, index });
    bringIntoSight(this.scroller, this.rowBand, this.columnBand);
  }

  spellCell({ row, column }) {
    const weight = this.app.shown.weight(this.panel, row, column);
    const text = weight === NOT_KEPT ? "not held" : spellWeight(weight);
    return `${this.app.label({ side: "q", index: row })} to ${this.app.label({ side: "k", index: column })}: ${text}`;
  }
}
