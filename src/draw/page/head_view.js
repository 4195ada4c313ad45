// Words twice, and a line from each query at the left to the keys that it looks at at the right, a
// colour a head. Only what is in sight is drawn, anew when it is scrolled.

const LINE_HEIGHTS = [[24, 29], [60, 25], [200, 21], [Infinity, 18]]; // up to so many words: pixels
const LINE_DASHES = [[], [7, 4], [2, 4]]; // colours come again, dashed

class HeadView {
  constructor(app, section) {
    this.app = app;
    this.section = section;
    this.words = { q: [], k: [] };
    this.linked = [];
    this.build();
    this.scroller.addEventListener("scroll", () => this.drawSoon(), { passive: true });
  }

  build() {
    const axis = (text) => buildElement("p", { className: "axis", textContent: text });
    this.lists = {
      q: this.buildList("q", "queries", "Queries: the words that look"),
      k: this.buildList("k", "keys", "Keys: the words that are looked at"),
    };
    this.canvas = buildElement("canvas", { className: "lines" });
    this.canvas.setAttribute("aria-hidden", "true");
    this.gap = buildElement("div", { className: "gap" }, this.canvas);
    const sheet = buildElement("div", { className: "head-sheet" },
      axis("query: looks"), axis(""), axis("key: looked at"), this.lists.q, this.gap, this.lists.k);
    this.scroller = buildElement("div", { className: "scroller" }, sheet);
    this.section.append(this.scroller);
  }

  buildList(side, className, name) {
    const list = buildElement("ol", { className: `words ${className}` });
    const wordOf = (event) => {
      const item = event.target.closest("li");
      return item && { side, index: Number(item.dataset[side === "q" ? "row" : "column"]) };
    };
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", name);
    list.addEventListener("pointerover", (event) => this.app.hover(wordOf(event)));
    list.addEventListener("pointerleave", () => this.app.hover(null));
    list.addEventListener("focusin", (event) => {
      this.walkTo(wordOf(event), event.target.matches(":focus-visible"));
    });
    list.addEventListener("focusout", () => this.app.hover(null));
    list.addEventListener("click", (event) => this.toggle(wordOf(event)));
    list.addEventListener("keydown", (event) => this.press(event, wordOf(event)));
    return list;
  }

  // What is seen.

  render() {
    const { app } = this;
    const hidden = `${app.state.hideSpecial} ${app.state.hideFirst}`;
    if (this.hidden !== hidden) {
      this.fill("q", app.shown.rows);
      this.fill("k", app.shown.columns);
      this.hidden = hidden;
    }
    const most = Math.max(app.shown.rows.length, app.shown.columns.length);
    this.lineHeight = LINE_HEIGHTS.find(([words]) => most <= words)[1];
    this.section.style.setProperty("--line", `${this.lineHeight}px`);
    this.largest = app.shown.largest(app.state.heads);
    app.readOut.showLegend(this.largest);
    this.resize();
    if (app.state.word && !this.isScrolled) bringIntoSight(this.scroller, this.itemOf(app.state.word));
    this.isScrolled = true;
  }

  fill(side, visible) {
    const name = side === "q" ? "row" : "column";
    this.placeOf ??= {};
    this.placeOf[side] = new Map();
    this.words[side] = Array.from(visible, (index, place) => {
      const text = buildLabel(this.app.label({ side, index }));
      const item = buildElement("li", { tabIndex: place ? -1 : 0, title: text.textContent }, text);
      item.setAttribute("role", "option");
      item.dataset[name] = index;
      this.placeOf[side].set(index, place);
      return item;
    });
    this.lists[side].replaceChildren(...this.words[side]);
    this.linked = [];
  }

  itemOf({ side, index }) {
    return this.words[side][this.placeOf[side].get(index)];
  }

  resize() {
    const scale = Math.min(2, devicePixelRatio);
    this.width = this.gap.clientWidth;
    this.height = Math.min(this.gap.clientHeight, this.scroller.clientHeight);
    this.canvas.width = Math.max(1, Math.round(this.width * scale));
    this.canvas.height = Math.max(1, Math.round(this.height * scale));
    this.canvas.style.height = `${this.height}px`;
    this.scale = scale;
    this.drawSoon();
  }

  showWord(chosen) {
    const { app } = this;
    for (const item of this.linked) item.classList.remove("chosen", "linked");
    this.linked = [];
    const item = chosen && this.itemOf(chosen);
    this.chosen = item ? chosen : null;
    this.section.classList.toggle("choosing", Boolean(item));
    if (item) {
      this.mark(item, "chosen");
      const other = chosen.side === "q" ? "k" : "q";
      for (const panel of app.state.heads)
        app.shown.eachLinkOf(app.shown.strongest(panel), chosen.side, chosen.index, (index) => {
          this.mark(this.words[other][this.placeOf[other].get(index)], "linked");
        });
    }
    for (const side of ["q", "k"])
      for (const word of this.words[side])
        if (word.hasAttribute("aria-selected")) word.removeAttribute("aria-selected");
    const locked = app.state.word && this.itemOf(app.state.word);
    if (locked) locked.setAttribute("aria-selected", "true");
    this.drawSoon();
  }

  mark(item, className) {
    item.classList.add(className);
    this.linked.push(item);
  }

  drawSoon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      if (!this.section.hidden) this.draw();
    });
  }

  draw() {
    const { app, chosen } = this;
    const { heads } = app.state;
    const context = this.canvas.getContext("2d");
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    const above = this.canvas.getBoundingClientRect().top - this.gap.getBoundingClientRect().top;
    this.top = above - this.lineHeight / 2;
    // A square a head beside each word at the other end: its place tells heads apart, as its colour does.
    this.square = chosen && heads.length > 1 ? Math.min(8, (0.35 * this.width) / heads.length) : 0;
    this.faint = 0.3 * Math.min(1, 80 / app.shown.rows.length);
    context.lineCap = "butt";
    // Lines of several heads run beside each other, not over each other.
    const step = heads.length > 1 ? Math.min(3, (this.lineHeight - 8) / (heads.length - 1)) : 0;
    heads.forEach((panel, place) => {
      this.aside = (place - (heads.length - 1) / 2) * step;
      context.strokeStyle = context.fillStyle = app.controls.color(panel);
      context.setLineDash(LINE_DASHES[app.controls.round(panel)]);
      const links = app.shown.strongest(panel);
      if (chosen) this.drawWord(context, links, heads.length, place);
      else this.drawAll(context, links);
    });
    context.globalAlpha = 1;
  }

  drawAll(context, { starts, columns, weights }) {
    for (const row of this.app.shown.rows)
      for (let link = starts[row]; link < starts[row + 1]; link++)
        this.drawLine(context, row, columns[link], weights[link], 2, this.width - 2);
  }

  drawWord(context, links, count, place) {
    const { side, index } = this.chosen;
    const squares = this.square * count;
    this.app.shown.eachLinkOf(links, side, index, (other, weight) => {
      const [row, column] = side === "q" ? [index, other] : [other, index];
      const left = side === "q" ? 2 : 2 + squares;
      this.drawLine(context, row, column, weight, left, this.width - 4 - squares + left);
      if (!this.square) return;
      const y = this.placeOf[side === "q" ? "k" : "q"].get(other) * this.lineHeight - this.top;
      const x = side === "q" ? this.width - squares : 0;
      context.globalAlpha = this.opacity(weight);
      context.fillRect(x + place * this.square, y - this.lineHeight / 2 + 2, this.square - 1, this.lineHeight - 4);
    });
  }

  opacity(weight) {
    return 0.14 + 0.86 * Math.min(1, weight / this.largest) ** 0.8;
  }

  isInSight(y) {
    return y > -4 && y < this.height + 4 ? 1 : 0;
  }

  // Of all lines those that lead out of sight are weak, or they would cover the others.
  drawLine(context, row, column, weight, left, right) {
    const from = this.placeOf.q.get(row) * this.lineHeight - this.top + this.aside;
    const to = this.placeOf.k.get(column) * this.lineHeight - this.top + this.aside;
    const ends = this.isInSight(from) + this.isInSight(to);
    if (!(weight > 0) || ends === 0) return;
    const middle = (left + right) / 2;
    context.globalAlpha = this.opacity(weight) * (ends === 2 || this.chosen ? 1 : this.faint);
    context.lineWidth = 0.75 + 3.25 * Math.min(1, weight / this.largest);
    context.beginPath();
    context.moveTo(left, from);
    context.bezierCurveTo(middle, from, middle, to, right, to);
    context.stroke();
  }

  // Chosen words.

  reach(word) {
    bringIntoSight(this.scroller, this.itemOf(word));
  }

  takeFocus(word) {
    this.itemOf(word)?.focus();
  }

  toggle(word) {
    if (word) this.app.lock(this.app.isLocked(word) ? null : word);
  }

  // By keys a word is also pointed at; a click on it does more than that.
  walkTo(word, isByKey) {
    if (!word) return;
    for (const item of this.words[word.side]) if (item.tabIndex === 0) item.tabIndex = -1;
    this.itemOf(word).tabIndex = 0;
    if (!isByKey) return;
    this.app.hover(word);
    if (!this.app.state.word) this.app.announce(this.app.readOut.sentence(this.app.panels, word));
  }

  press(event, word) {
    if (!word) return;
    const { side } = word;
    const place = this.placeOf[side].get(word.index);
    const focus = (to, at) => {
      const words = this.words[to];
      words[Math.max(0, Math.min(words.length - 1, at))]?.focus();
    };
    const moves = {
      ArrowUp: () => focus(side, place - 1),
      ArrowDown: () => focus(side, place + 1),
      ArrowLeft: () => focus("q", place),
      ArrowRight: () => focus("k", place),
      Home: () => focus(side, 0),
      End: () => focus(side, Infinity),
      Enter: () => this.toggle(word),
      " ": () => this.toggle(word),
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    moves[event.key]();
  }
}
