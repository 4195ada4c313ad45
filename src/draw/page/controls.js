// The bar above the views: which heads, which words, how strong a link must be.

// Far apart from each other in OKLab, also as eyes without red or green see them (G. Machado 2009), the
// first ones farthest; of a contrast to the page of at least 4.4.
const HEAD_COLORS = {
  light: [
    "#3a55d9", "#bb550e", "#ab0c94", "#397e66", "#de297b", "#754a23",
    "#756aba", "#7d376e", "#205f9f", "#6c1bb9", "#1a634d", "#b91a48",
  ],
  dark: [
    "#8fa8ff", "#169e27", "#f7619a", "#8ce01f", "#c9ad76", "#c162f4",
    "#31c7d4", "#ff4f17", "#589c83", "#cde387", "#987aca", "#40e3b1",
  ],
};
const LINK_CHOICES = [1, 2, 3, 5, 8, 12, 20, 0];

class Controls {
  constructor(app) {
    this.app = app;
    this.form = app.find(".bar");
    this.list = this.form.querySelector(".head-list");
    this.all = this.list.querySelector(".all-heads");
    this.before = null; // heads before one was had alone
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.listen("layer", "change", (input) => this.chooseGroup(Number(input.value)));
    this.listen("hide-special", "change", (input) => app.update({ hideSpecial: input.checked }));
    this.listen("hide-first", "change", (input) => app.update({ hideFirst: input.checked }));
    this.listen("renormalize", "change", (input) => app.update({ renormalize: input.checked }));
    this.listen("links", "change", (input) => app.update({ links: Number(input.value) }));
    this.listen("zoom", "input", (input) => app.update({ zoom: Number(input.value) }));
    // Weak weights are many: the slider is finer among them.
    this.listen("least", "input", (input) => (
      app.update({ least: (Number(input.value) / 100) ** 2 * app.shown.largestPossible() })));
    this.all.addEventListener("click", () => this.toggleAll());
  }

  listen(name, type, act) {
    const input = this.form.elements[name];
    input.addEventListener(type, () => act(input));
  }

  // A new page.
  open() {
    const { page, state } = this.app;
    this.before = null;
    this.builtGroup = null;
    const choose = this.form.elements.layer;
    choose.replaceChildren(...state.groups.map(({ layer }, i) => (
      new Option(layer === MEAN ? "all layers" : String(layer), i))));
    this.form.querySelector(".layer-choice").hidden = state.groups.length < 2;
    const isOfMeans = page.panels.every(({ head }) => head === MEAN);
    this.form.querySelector(".heads legend").textContent = isOfMeans ? "Layers" : "Heads";
    this.form.querySelector(".hide-special").hidden = !page.hasSpecial;
    const most = page.data.strongest || page.columns;
    const choices = LINK_CHOICES.filter((links) => links < most);
    if (!choices.includes(state.links)) choices.splice(-1, 0, state.links);
    this.form.elements.links.replaceChildren(...choices.map((links) => new Option(links || "all", links)));
  }

  isMean(panel) {
    const { layer, head } = this.app.page.panels[panel];
    return layer === MEAN || head === MEAN;
  }

  // In a group of one layer by head, so that a head keeps its colour; else by place.
  colorPlace(panel) {
    const { page, state } = this.app;
    const { layer, panels } = state.groups[state.groupOf(panel)];
    if (layer !== null) return page.panels[panel].head;
    const isOfAll = (other) => page.panels[other].layer === MEAN && page.panels[other].head === MEAN;
    return isOfAll(panel) ? MEAN : panels.filter((other) => !isOfAll(other)).indexOf(panel);
  }

  // The mean beside a layer's heads, and the mean of all, are as ink.
  color(panel) {
    const { isDark } = this.app;
    const place = this.colorPlace(panel);
    if (place === MEAN) return isDark ? "#dfe4ea" : "#343b45";
    const colors = HEAD_COLORS[isDark ? "dark" : "light"];
    return colors[place % colors.length];
  }

  // How often the colours were used up before this head, as far as dashes tell.
  round(panel) {
    return Math.floor(Math.max(0, this.colorPlace(panel)) / HEAD_COLORS.light.length) % 3;
  }

  render() {
    const { page, state, shown } = this.app;
    const { elements } = this.form;
    this.buildHeads();
    elements.layer.value = state.group;
    elements["hide-special"].checked = state.hideSpecial;
    elements["hide-first"].checked = state.hideFirst;
    elements.renormalize.checked = state.renormalize;
    elements.links.value = state.links;
    elements.least.value = Math.round(100 * Math.sqrt(state.least / shown.largestPossible()));
    this.form.querySelector(".least-shown").textContent = state.least ? spellWeight(state.least) : "0";
    this.form.querySelector(".links-choice").hidden = state.view !== "head";
    this.form.querySelector(".zoom-choice").hidden = state.view !== "matrix";
    const notes = [];
    if (page.data.renormalized) notes.push("Rows were divided by their sums when this page was made.");
    if (state.renormalize) {
      const held = page.data.strongest ? " and held here" : "";
      notes.push(`Renormalised: each row is divided by the sum of what is shown of it${held}.`);
    }
    this.form.querySelector(".notes").textContent = notes.join(" ");
  }

  // Where the zoom is not chosen, the matrix finds one that fits.
  showZoom(cell) {
    this.form.elements.zoom.value = cell;
  }

  // Heads.

  buildHeads() {
    const { state, isDark } = this.app;
    const { panels } = state.groups[state.group];
    const built = `${state.group} ${isDark}`;
    if (built !== this.builtGroup) {
      this.builtGroup = built;
      this.list.replaceChildren(...panels.map((panel) => this.buildHead(panel)), this.all);
    }
    this.list.querySelectorAll("input").forEach((input, i) => { input.checked = state.heads.includes(panels[i]); });
    const heads = panels.filter((panel) => !this.isMean(panel));
    this.all.hidden = heads.length < 2;
    this.all.setAttribute("aria-pressed", heads.length > 0 && heads.every((panel) => state.heads.includes(panel)));
    this.form.querySelector(".heads").hidden = panels.length < 2;
  }

  buildHead(panel) {
    const { page, state } = this.app;
    const about = page.panels[panel];
    const input = buildElement("input", { type: "checkbox" });
    input.setAttribute("aria-label", spellPanel(about));
    input.addEventListener("change", () => this.toggle(panel, input.checked));
    input.addEventListener("keydown", (event) => this.press(event, panel));
    const text = buildElement("span", { textContent: this.shortName(about, state.groups[state.group].layer !== null) });
    text.style.borderStyle = ["solid", "dashed", "dotted"][this.round(panel)];
    const title = `${spellPanel(about)}; double-click or Enter: alone`;
    const label = buildElement("label", { className: "head-toggle", title }, input, text);
    label.style.setProperty("--head", this.color(panel));
    label.addEventListener("dblclick", (event) => { event.preventDefault(); this.haveAlone(panel); });
    return label;
  }

  shortName({ layer, head }, isOneLayer) {
    if (head === MEAN) return isOneLayer || layer === MEAN ? "mean" : `L${layer} mean`;
    return isOneLayer ? String(head) : codePanel({ layer, head });
  }

  press(event, panel) {
    const inputs = [...this.list.querySelectorAll("input")];
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    if (event.key === "Enter") this.haveAlone(panel);
    else if (event.key in steps) inputs[inputs.indexOf(event.target) + steps[event.key]]?.focus();
    else return;
    event.preventDefault();
  }

  // A head that is asked for while the mean of its layer is shown alone takes its place: who chose a
  // layer, and then a head of it, wants that head.
  toggle(panel, isOn) {
    const { heads } = this.app.state;
    const isOfMean = isOn && !this.isMean(panel) && heads.length > 0 && heads.every((head) => this.isMean(head));
    if (isOfMean) this.before = heads;
    const others = isOfMean ? [] : heads.filter((head) => head !== panel);
    this.app.update({ heads: isOn ? [...others, panel] : others });
  }

  toggleAll() {
    const { state } = this.app;
    const heads = state.groups[state.group].panels.filter((panel) => !this.isMean(panel));
    const isAll = heads.every((panel) => state.heads.includes(panel));
    this.app.update({ heads: isAll ? [state.active] : heads });
  }

  haveAlone(panel) {
    const { heads } = this.app.state;
    const isAlone = heads.length === 1 && heads[0] === panel;
    const before = isAlone && this.before ? this.before : [panel];
    if (isAlone) this.before = null;
    else if (heads.length) this.before = heads; // none are left where the first of two clicks hid the only one
    this.app.update({ heads: before });
  }

  // The same heads of another layer, or its mean.
  chooseGroup(group) {
    const { page, state } = this.app;
    const { layer, panels } = state.groups[group];
    const same = state.heads.map((panel) => page.panelIndex(layer, page.panels[panel].head));
    const heads = same.filter((panel) => panels.includes(panel));
    this.before = null;
    this.app.update({ group, heads: heads.length ? heads : [panels[0]] });
  }
}
