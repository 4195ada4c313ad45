"use strict";
(() => {
  const LARGEST_CODE = 65534;
  const NOT_A_NUMBER_CODE = 65535;
  const NOT_KEPT = -1; // in place of a weight that the page does not hold
  const LEVELS = 256;
  const RANKED = 8;

  // The weights as C wrote them: two bytes each, or column and weight of each row's strongest.
  class Weights {
    constructor(data) {
      this.data = data;
      const text = atob(data.weights);
      const bytes = new Uint8Array(text.length);
      for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
      this.view = new DataView(bytes.buffer);
    }

    decode(code) {
      return code === NOT_A_NUMBER_CODE ? NaN : (code / LARGEST_CODE) * this.data.largest;
    }

    // Calls visit(row, column, weight) for each weight of a panel that the page holds.
    each(panel, visit) {
      const { rows, columns, strongest } = this.data;
      const perRow = strongest || columns;
      const bytes = strongest ? 4 : 2;
      let at = panel * rows * perRow * bytes;
      for (let row = 0; row < rows; row++)
        for (let i = 0; i < perRow; i++, at += bytes) {
          const column = strongest ? this.view.getUint16(at, true) : i;
          visit(row, column, this.decode(this.view.getUint16(at + bytes - 2, true)));
        }
    }

    matrix(panel) {
      const { rows, columns } = this.data;
      const matrix = new Float32Array(rows * columns).fill(NOT_KEPT);
      this.each(panel, (row, column, weight) => { matrix[row * columns + column] = weight; });
      return matrix;
    }

    // The largest weight in each square of a coarser grid, for a small picture.
    reduced(panel, height, width) {
      const { rows, columns } = this.data;
      const small = new Float32Array(height * width);
      this.each(panel, (row, column, weight) => {
        const y = Math.floor((row * height) / rows);
        const at = y * width + Math.floor((column * width) / columns);
        if (Number.isNaN(weight) || weight > small[at]) small[at] = weight;
      });
      return small;
    }
  }

  class AttentionMap {
    constructor(root) {
      this.root = root;
      this.data = JSON.parse(this.find(".attention-map-data").textContent);
      this.weights = new Weights(this.data);
      this.rowLabels = [...root.querySelectorAll(".rows li")];
      this.columnLabels = [...root.querySelectorAll(".columns li")];
      this.field = this.find(".field");
      this.darkness = matchMedia("(prefers-color-scheme: dark)");
      this.panel = 0;
      this.row = this.column = null;
      for (const label of [...this.rowLabels, ...this.columnLabels])
        label.title = label.textContent;
      this.addPanels();
      this.listen();
      this.resize();
      this.recolor();
    }

    find(selector) {
      return this.root.querySelector(selector);
    }

    listen() {
      this.darkness.addEventListener("change", () => this.recolor());
      addEventListener("resize", () => this.resize());
      this.field.addEventListener("pointermove", (event) => this.point(event));
      this.field.addEventListener("pointerdown", (event) => this.point(event));
      this.field.addEventListener("keydown", (event) => this.press(event));
    }

    // Sizes.

    resize() {
      const { rows, columns } = this.data;
      const room = Math.min(this.root.clientWidth - 200, 760);
      this.cell = Math.max(10, Math.min(34, Math.floor(room / Math.max(rows, columns))));
      const slanted = this.cell >= 22;
      this.root.style.setProperty("--cell", `${this.cell}px`);
      this.root.style.setProperty("--label-size", `${Math.max(9, Math.min(13, this.cell * 0.8))}px`);
      const canvas = this.find(".cells");
      canvas.style.width = `${columns * this.cell}px`;
      canvas.style.height = `${rows * this.cell}px`;
      this.drawLines();
      this.placeColumnLabels(slanted);
      this.showCell();
    }

    drawLines() {
      const width = this.cell >= 20 ? 2 : this.cell >= 12 ? 1 : 0;
      const line = `var(--surface) ${width}px, transparent ${width}px`;
      const lines = this.find(".lines").style;
      lines.backgroundImage = width ? `linear-gradient(90deg, ${line}), linear-gradient(${line})` : "none";
      lines.backgroundSize = `${this.cell}px ${this.cell}px`;
      lines.backgroundPosition = `${-width / 2}px ${-width / 2}px`;
    }

    placeColumnLabels(slanted) {
      const list = this.find(".columns");
      list.classList.toggle("slanted", slanted);
      list.style.height = list.style.width = "";
      if (!slanted) return;
      const width = this.data.columns * this.cell;
      let height = 0;
      let right = width;
      this.columnLabels.forEach((label, column) => {
        const text = label.firstElementChild;
        const reach = (text.offsetWidth + text.offsetHeight) * Math.SQRT1_2;
        height = Math.max(height, reach);
        right = Math.max(right, (column + 0.55) * this.cell + reach);
      });
      list.style.height = `${Math.ceil(height) + 6}px`;
      list.style.width = `${Math.ceil(right)}px`;
    }

    // Colours.

    recolor() {
      const text = this.darkness.matches ? this.data.dark : this.data.light;
      this.colors = [];
      for (let i = 0; i < text.length; i += 6) this.colors.push(parseInt(text.slice(i, i + 6), 16));
      this.drawLegend();
      this.root.querySelectorAll(".panel-list canvas").forEach((canvas, panel) => {
        this.paint(canvas, this.weights.reduced(panel, canvas.height, canvas.width));
      });
      this.choosePanel(this.panel);
    }

    color(weight) {
      const part = Math.max(0, Math.min(1, weight / this.data.largest));
      return this.colors[Number.isNaN(weight) ? LEVELS : Math.round(part * (LEVELS - 1))];
    }

    css(weight) {
      return `#${this.color(weight).toString(16).padStart(6, "0")}`;
    }

    paint(canvas, matrix) {
      const context = canvas.getContext("2d");
      const image = context.createImageData(canvas.width, canvas.height);
      matrix.forEach((weight, i) => {
        const color = this.color(weight);
        image.data[4 * i] = color >> 16;
        image.data[4 * i + 1] = (color >> 8) & 255;
        image.data[4 * i + 2] = color & 255;
        image.data[4 * i + 3] = 255;
      });
      context.putImageData(image, 0, 0);
    }

    drawLegend() {
      const { largest, strongest, share, hasNotANumber } = this.data;
      const stops = [];
      for (let i = 0; i <= 24; i++) stops.push(this.css((largest * i) / 24));
      this.find(".legend-bar").style.background = `linear-gradient(90deg, ${stops.join(", ")})`;
      this.find(".legend-half").textContent = (largest / 2).toPrecision(3);
      this.find(".legend-largest").textContent = largest.toPrecision(3);
      this.find(".legend-not-a-number").hidden = !hasNotANumber;
      this.find(".swatch").style.background = this.css(NaN);
      const kept = this.find(".legend-kept");
      kept.hidden = !strongest;
      const weights = strongest === 1 ? "strongest weight" : `${strongest} strongest weights`;
      kept.textContent = `To stay small this page holds the ${weights} of each row: ` +
        `${(100 * share).toFixed(0)}% of all weight. The other cells look like 0.`;
    }

    // Panels.

    addPanels() {
      const { panels, rows, columns } = this.data;
      if (panels.length < 2) return;
      const list = this.find(".panel-list");
      const beside = this.panelsBeside();
      const size = panels.length > 40 ? 34 : 52;
      list.style.gridTemplateColumns = `repeat(${beside}, auto)`;
      list.style.setProperty("--thumb", `${size}px`);
      this.root.style.setProperty("--aside", `${Math.max(300, beside * (size + 5) + 8)}px`);
      panels.forEach((panel, i) => {
        const input = document.createElement("input");
        Object.assign(input, { type: "radio", name: "panel", checked: i === 0 });
        input.setAttribute("aria-label", panel.title);
        input.addEventListener("change", () => this.choosePanel(i));
        const canvas = document.createElement("canvas");
        canvas.width = Math.min(columns, size);
        canvas.height = Math.min(rows, size);
        const label = document.createElement("label");
        label.title = panel.title;
        label.append(input, canvas);
        if (size > 40) label.append(Object.assign(document.createElement("small"), { textContent: panel.title }));
        list.append(label);
      });
      this.find(".panels").hidden = false;
    }

    // A line of the list is a layer where all layers have as many heads.
    panelsBeside() {
      const { panels } = this.data;
      const run = panels.findIndex((panel) => panel.layer !== panels[0].layer);
      const even = run > 1 && panels.length % run === 0 &&
        panels.every((panel, i) => panel.layer === panels[i - (i % run)].layer);
      return even ? run : Math.min(panels.length, 6);
    }

    choosePanel(panel) {
      this.panel = panel;
      this.matrix = this.weights.matrix(panel);
      const canvas = this.find(".cells");
      canvas.width = this.data.columns;
      canvas.height = this.data.rows;
      this.paint(canvas, this.matrix);
      this.find(".panel-title").textContent = this.data.panels[panel].title;
      this.showCell();
    }

    stepPanel(step) {
      const inputs = this.root.querySelectorAll(".panel-list input");
      const next = this.panel + step;
      if (next < 0 || next >= inputs.length) return;
      inputs[next].checked = true;
      this.choosePanel(next);
    }

    // The chosen cell.

    point(event) {
      const area = this.find(".cells").getBoundingClientRect();
      this.choose(Math.floor((event.clientY - area.top) / this.cell),
        Math.floor((event.clientX - area.left) / this.cell));
    }

    press(event) {
      const moves = {
        ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
        Home: [0, -this.data.columns], End: [0, this.data.columns],
      };
      const panels = { PageUp: -1, PageDown: 1 };
      if (event.key in panels) this.stepPanel(panels[event.key]);
      else if (event.key in moves && this.row === null) this.choose(0, 0);
      else if (event.key in moves) this.choose(this.row + moves[event.key][0], this.column + moves[event.key][1]);
      else return;
      event.preventDefault();
      this.find(".row-band").scrollIntoView({ block: "nearest", inline: "nearest" });
      this.find(".column-band").scrollIntoView({ block: "nearest", inline: "nearest" });
    }

    choose(row, column) {
      const inside = (index, count) => Math.max(0, Math.min(count - 1, index));
      const chosenRow = inside(row, this.data.rows);
      const chosenColumn = inside(column, this.data.columns);
      if (chosenRow === this.row && chosenColumn === this.column) return;
      if (this.row !== null) {
        this.rowLabels[this.row].classList.remove("current");
        this.columnLabels[this.column].classList.remove("current");
      }
      this.row = chosenRow;
      this.column = chosenColumn;
      this.showCell();
    }

    showCell() {
      if (this.row === null || !this.matrix) return;
      const rowBand = this.find(".row-band");
      const columnBand = this.find(".column-band");
      rowBand.hidden = columnBand.hidden = false;
      rowBand.style.top = `${this.row * this.cell}px`;
      columnBand.style.left = `${this.column * this.cell}px`;
      this.rowLabels[this.row].classList.add("current");
      this.columnLabels[this.column].classList.add("current");
      this.find(".cell-query").textContent = this.rowLabels[this.row].textContent;
      this.find(".cell-key").textContent = this.columnLabels[this.column].textContent;
      const weight = this.matrix[this.row * this.data.columns + this.column];
      const text = this.find(".cell-weight");
      text.textContent = this.spell(weight);
      text.classList.toggle("small", !(weight >= 0));
      this.find(".read-out .hint").hidden = true;
      this.rank();
    }

    spell(weight) {
      if (weight !== NOT_KEPT) return Number.isNaN(weight) ? "not a number" : weight.toFixed(4);
      return `below the ${this.data.strongest} strongest of its row`;
    }

    rank() {
      const { columns, largest } = this.data;
      const row = this.matrix.subarray(this.row * columns, (this.row + 1) * columns);
      // As on a terminal, the word itself is no answer; only a square map has one.
      const itself = this.data.rows === columns ? this.row : NOT_KEPT;
      const order = [...row.keys()].filter((column) => row[column] > 0 && column !== itself);
      order.sort((a, b) => row[b] - row[a] || a - b);
      const items = order.slice(0, RANKED).map((column) => {
        const item = document.createElement("li");
        const label = document.createElement("bdi");
        const number = document.createElement("span");
        const bar = document.createElement("i");
        label.textContent = label.title = this.columnLabels[column].textContent;
        number.textContent = row[column].toFixed(4);
        bar.style.width = `${(100 * row[column]) / largest}%`;
        item.append(label, number, bar);
        return item;
      });
      this.find(".ranking").hidden = items.length === 0;
      this.find(".ranking-query").textContent = this.rowLabels[this.row].textContent;
      this.find(".ranking-list").replaceChildren(...items);
    }
  }

  // Also where the bodies of several pages stand in one: each map is opened once.
  for (const root of document.querySelectorAll(".attention-map:not([data-open])")) {
    root.dataset.open = "";
    new AttentionMap(root);
  }
})();
