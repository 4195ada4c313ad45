// The page: holds the parts together. A change goes to the state, from there to the fragment and to
// what is seen.

class AttentionPage {
  constructor(root, number) {
    this.root = root;
    this.number = number;
    this.hovered = null; // {side, index, key}, while nothing is locked or besides
    this.views = {};
    this.darkness = matchMedia("(prefers-color-scheme: dark)");
    this.controls = new Controls(this);
    this.readOut = new ReadOut(this);
    this.made = new MadeStrip(this.find(".made"));
    this.listen();
    const data = JSON.parse(this.find(".attention-map-data").textContent);
    if (root.hasAttribute("data-ask")) this.ask = new AskForm(this.find(".ask"), (answer) => this.open(answer));
    this.find(".ask").hidden = !this.ask;
    this.ask?.invite();
    if (data) this.open(data);
  }

  find(selector) {
    return this.root.querySelector(selector);
  }

  listen() {
    this.darkness.addEventListener("change", () => this.page && this.render());
    addEventListener("hashchange", () => this.page && this.readState());
    addEventListener("resize", () => this.page && this.view.resize());
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.page && this.state.word) this.unlock();
    });
    const tabs = this.tabs();
    tabs.forEach((tab, i) => {
      const panel = this.find(`[role=tabpanel][data-view=${tab.dataset.view}]`);
      tab.id = `attention-${this.number}-tab-${tab.dataset.view}`;
      panel.id = `attention-${this.number}-view-${tab.dataset.view}`;
      tab.setAttribute("aria-controls", panel.id);
      panel.setAttribute("aria-labelledby", tab.id);
      tab.addEventListener("click", () => this.update({ view: tab.dataset.view }));
      tab.addEventListener("keydown", (event) => {
        const to = { ArrowRight: i + 1, ArrowLeft: i + tabs.length - 1, Home: 0, End: tabs.length - 1 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        tabs[to % tabs.length].focus();
        tabs[to % tabs.length].click();
      });
    });
  }

  tabs() {
    return [...this.root.querySelectorAll("[role=tab]")];
  }

  // Shows a map; also in place of another.
  open(data) {
    const isAnother = Boolean(this.page);
    this.page = new PageData(data);
    this.state = new State(this.number, this.page);
    if (isAnother) Object.assign(this.state, { word: null, key: null }); // a word of the other text
    this.shown = null;
    this.hovered = null;
    this.showText(".text-first", this.ask ? null : data.text);
    this.showText(".text-pair", this.ask ? null : data.pair);
    this.find(".page").hidden = false;
    const views = { head: HeadView, model: ModelView, matrix: MatrixView };
    for (const [name, View] of Object.entries(views)) {
      const section = this.find(`[role=tabpanel][data-view=${name}]`);
      section.replaceChildren();
      this.views[name] = new View(this, section);
    }
    this.controls.open();
    this.made.setPage(this.page);
    this.state.write();
    this.render();
  }

  showText(selector, text) {
    const paragraph = this.find(selector);
    paragraph.hidden = !text;
    paragraph.textContent = text || "";
  }

  get view() {
    return this.views[this.state.view];
  }

  get isDark() {
    return this.darkness.matches;
  }

  get colors() {
    return this.isDark ? this.darkColors : this.lightColors;
  }

  label({ side, index }) {
    return side === "q" ? this.page.rowLabels[index] : this.page.columnLabels[index];
  }

  // Changes.

  readState() {
    this.state.read();
    this.hovered = null;
    this.render();
  }

  update(change) {
    Object.assign(this.state, change);
    if (change.heads && change.heads.length) this.state.group = this.state.groupOf(this.state.active);
    this.state.write();
    this.render();
  }

  // A head alone, in a view of single heads.
  openHead(panel, view) {
    this.update({ heads: [panel], view: view || this.viewBefore || "head" });
    this.tabs().find((tab) => tab.dataset.view === this.state.view).focus();
  }

  // word: {side, index} or null; key: in a query's row, or null.
  lock(word, key = null) {
    this.hovered = null;
    Object.assign(this.state, { word, key });
    this.state.write();
    this.showWord();
    this.announce(word ? this.readOut.sentence(this.panels, word) : "unlocked");
  }

  // What goes away with the lock may have the focus: the word it was about gets it.
  unlock() {
    const { word } = this.state;
    const isLost = [".made", ".read-out"].some((part) => this.find(part).contains(document.activeElement));
    this.lock(null);
    if (isLost) this.view.takeFocus(word);
  }

  isLocked({ side, index }) {
    const { word } = this.state;
    return word !== null && word.side === side && word.index === index;
  }

  // What is pointed at, or null. A word that is locked stays.
  hover(word, key = null) {
    this.hovered = word ? { ...word, key } : null;
    this.showWord();
  }

  announce(text) {
    this.find(".status").textContent = text;
  }

  // What is seen.

  get panels() {
    return this.state.view === "matrix" ? [this.state.active] : this.state.heads;
  }

  // What views show: in the matrix the cell pointed at, then the chosen one; a locked word stays.
  get chosen() {
    const locked = this.state.word && { ...this.state.word, key: this.state.key };
    return this.state.view === "matrix" ? this.hovered || locked : locked || this.hovered;
  }

  render() {
    const { state } = this;
    const filter = JSON.stringify(state.filter);
    if (!this.shown || filter !== this.filterShown) this.shown = new Shown(this.page, state.filter);
    this.filterShown = filter;
    this.lightColors = this.lightColors || new WeightColors(this.page.data.light);
    this.darkColors = this.darkColors || new WeightColors(this.page.data.dark);
    if (state.view !== "model") this.viewBefore = state.view;
    for (const tab of this.tabs()) {
      const isChosen = tab.dataset.view === state.view;
      tab.setAttribute("aria-selected", isChosen);
      tab.tabIndex = isChosen ? 0 : -1;
      this.find(`[role=tabpanel][data-view=${tab.dataset.view}]`).hidden = !isChosen;
    }
    this.controls.render();
    this.view.render();
    this.showWord();
    if (!("open" in this.root.dataset)) performance.mark("attention-map-open");
    this.root.dataset.open = "";
  }

  showWord() {
    const { state, panels, chosen } = this;
    this.view.showWord(chosen);
    if (state.view === "model") this.readOut.show(state.heads, null, null);
    else this.readOut.show(panels, chosen, chosen && chosen.key);
    this.showMade();
  }

  // Of one head alone, how the chosen word's weights are made.
  showMade() {
    const { word } = this.state;
    const { layer, head } = this.page.panels[this.state.active];
    const isOne = this.panels.length === 1 && layer !== MEAN && head !== MEAN;
    if (isOne && word && word.side === "q") this.made.show(layer, head, word.index);
    else this.made.hide();
  }
}

// Also where the bodies of several pages stand in one: each map is opened once.
document.querySelectorAll(".attention-map").forEach((root, i) => {
  if (root.dataset.attention) return;
  root.dataset.attention = String(i + 1);
  new AttentionPage(root, i + 1);
});
