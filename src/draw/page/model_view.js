// Every head as a small picture: rows are layers, columns are heads. Pictures are drawn when they
// come into sight.

const PICTURE_LEAST = 20; // pixels
const PICTURE_MOST = 76;
const PICTURE_GAP = 4;

class ModelView {
  constructor(app, section) {
    this.app = app;
    this.section = section;
    this.watcher = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) this.draw(target);
    }, { rootMargin: "120px" });
    this.build();
  }

  // Layers from the first, a mean of all last; likewise heads.
  places(name) {
    const places = [...new Set(this.app.page.panels.map((panel) => panel[name]))].filter((place) => place !== MEAN);
    places.sort((a, b) => a - b);
    if (this.app.page.panels.some((panel) => panel[name] === MEAN)) places.push(MEAN);
    return places;
  }

  build() {
    const { page } = this.app;
    this.layers = this.places("layer");
    this.heads = this.places("head");
    this.cells = [];
    this.grid = buildElement("div", { className: "grid" });
    this.grid.setAttribute("role", "grid");
    this.grid.setAttribute("aria-multiselectable", "true");
    this.grid.setAttribute("aria-label", "Heads: rows are layers, columns are heads");
    this.grid.style.setProperty("--beside", this.heads.length);
    const spell = (place, isLayer) => (place === MEAN ? isLayer ? "all" : "mean" : String(place));
    this.addLine("header", buildElement("span", { textContent: "layer" }),
      this.heads.map((head) => this.buildName("columnheader", spell(head, false), `head ${spell(head, false)}`)));
    this.layers.forEach((layer, line) => {
      const cells = this.heads.map((head, column) => {
        const panel = page.panelIndex(layer, head);
        return panel < 0 ? this.buildNothing() : this.buildPicture(panel, line, column);
      });
      this.addLine("", this.buildName("rowheader", spell(layer, true), `layer ${spell(layer, true)}`), cells);
    });
    const axis = buildElement("p", { className: "axis grid-axis", textContent: "head" });
    this.section.append(buildElement("div", { className: "scroller" }, axis, this.grid));
    this.grid.addEventListener("keydown", (event) => this.press(event));
    this.grid.addEventListener("focusin", (event) => this.point(event.target.closest("[data-panel]")));
    this.grid.addEventListener("pointerover", (event) => this.point(event.target.closest("[data-panel]")));
    this.grid.addEventListener("pointerleave", () => this.point(null));
  }

  addLine(className, name, cells) {
    const line = buildElement("div", { className: `grid-line ${className}` }, name, ...cells);
    line.setAttribute("role", "row");
    this.grid.append(line);
  }

  buildName(role, text, spoken) {
    const name = buildElement("span", { className: "place-name", textContent: text });
    name.setAttribute("role", role);
    name.setAttribute("aria-label", spoken);
    return name;
  }

  buildNothing() {
    const cell = buildElement("span", {});
    cell.setAttribute("role", "gridcell");
    cell.setAttribute("aria-label", "no head");
    return cell;
  }

  buildPicture(panel, line, column) {
    const about = this.app.page.panels[panel];
    const properties = { className: "picture", tabIndex: -1, title: spellPanel(about) };
    const cell = buildElement("div", properties, buildElement("canvas", {}));
    cell.setAttribute("role", "gridcell");
    cell.setAttribute("aria-label", spellPanel(about));
    Object.assign(cell.dataset, { panel, line, column });
    cell.addEventListener("click", (event) => (
      event.shiftKey || event.ctrlKey ? this.toggle(panel) : this.app.openHead(panel)));
    this.cells.push(cell);
    return cell;
  }

  // What is seen.

  render() {
    const { state, shown, page, isDark } = this.app;
    const look = `${this.app.filterShown} ${isDark}`;
    this.largest = shown.filter.renormalize ? 1 : page.largest;
    const current = this.cells.find((cell) => Number(cell.dataset.panel) === state.active) || this.cells[0];
    for (const cell of this.cells) {
      const isShown = state.heads.includes(Number(cell.dataset.panel));
      cell.setAttribute("aria-selected", isShown);
      cell.tabIndex = cell === current ? 0 : -1;
    }
    this.app.readOut.showLegend(this.largest);
    this.look = look;
    this.resize();
  }

  resize() {
    const room = Math.min(this.section.clientWidth, 1100) - 44;
    const fit = Math.floor(room / this.heads.length) - PICTURE_GAP;
    const size = Math.max(PICTURE_LEAST, Math.min(PICTURE_MOST, fit));
    this.grid.style.setProperty("--picture", `${size}px`);
    this.size = Math.round(size * Math.min(2, devicePixelRatio));
    // Watching again reports what is in sight now.
    this.watcher.disconnect();
    for (const cell of this.cells) this.watcher.observe(cell);
  }

  draw(cell) {
    const look = `${this.look} ${this.size}`;
    if (cell.dataset.look === look) return;
    cell.dataset.look = look;
    const { shown, colors } = this.app;
    const canvas = cell.firstChild;
    canvas.width = Math.max(1, Math.min(this.size, shown.columns.length));
    canvas.height = Math.max(1, Math.min(this.size, shown.rows.length));
    colors.paint(canvas, shown.reduced(Number(cell.dataset.panel), canvas.height, canvas.width), this.largest);
  }

  showWord() {}

  point(cell) {
    if (cell) this.app.readOut.showTitle([Number(cell.dataset.panel)]);
    else this.app.readOut.show(this.app.state.heads, null, null);
  }

  // Keys.

  takeFocus() {
    this.cells.find((cell) => cell.tabIndex === 0)?.focus();
  }

  press(event) {
    const cell = event.target.closest("[data-panel]");
    if (!cell) return;
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.key in steps) this.step(cell, ...steps[event.key]);
    else if (event.key === "Home" || event.key === "End") this.edge(cell, event.key === "End");
    else if (event.key === "Enter") this.app.openHead(Number(cell.dataset.panel));
    else if (event.key === " ") this.toggle(Number(cell.dataset.panel));
    else return;
    event.preventDefault();
  }

  // Over places without a head, to the next one there is.
  step(cell, down, right) {
    let line = Number(cell.dataset.line);
    let column = Number(cell.dataset.column);
    let next;
    do {
      line += down;
      column += right;
      next = this.cells.find(({ dataset }) => Number(dataset.line) === line && Number(dataset.column) === column);
    } while (!next && line >= 0 && line < this.layers.length && column >= 0 && column < this.heads.length);
    this.focus(cell, next);
  }

  edge(cell, isEnd) {
    const line = this.cells.filter(({ dataset }) => dataset.line === cell.dataset.line);
    this.focus(cell, line[isEnd ? line.length - 1 : 0]);
  }

  focus(cell, next) {
    if (!next) return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  // Heads of one layer may be shown together.
  toggle(panel) {
    const { state } = this.app;
    const isBeside = state.groupOf(panel) === state.group;
    const others = isBeside ? state.heads.filter((head) => head !== panel) : [];
    const heads = state.heads.includes(panel) ? others : [...others, panel];
    this.app.update({ heads });
    const cell = this.cells.find(({ dataset }) => Number(dataset.panel) === panel);
    cell.focus();
    this.app.announce(`${spellPanel(this.app.page.panels[panel])} ${heads.includes(panel) ? "shown" : "not shown"}`);
  }
}
