// Beside the views: what the chosen word looks at, in numbers, and what colours and lines mean.

const RANKED = 8;
const PLACES_FROM = 40; // words

class ReadOut {
  constructor(app) {
    this.app = app;
    this.section = app.find(".read-out");
    this.legend = app.find(".legend");
  }

  // word: {side, index} or null; key: a column of a query's row, or null.
  show(panels, word, key) {
    const isKnown = word !== null && panels.length > 0;
    this.showTitle(panels);
    this.showWeight(panels, isKnown && word.side === "q" ? word : null, key);
    const heading = this.part(".read-word");
    heading.hidden = !isKnown;
    this.part(".hint").textContent = this.hint(isKnown);
    if (!isKnown) {
      this.part(".ranking").replaceChildren();
      return;
    }
    const label = buildLabel(this.app.label(word));
    heading.replaceChildren(label, word.side === "q" ? " looks at" : " is looked at by");
    this.rank(panels, word);
  }

  part(selector) {
    return this.section.querySelector(selector);
  }

  showTitle(panels) {
    this.part(".read-title").textContent = this.title(panels);
  }

  title(panels) {
    if (panels.length === 0) return "No head is chosen.";
    if (panels.length === 1) return spellPanel(this.app.page.panels[panels[0]]);
    return `mean of the ${panels.length} shown`;
  }

  hint(isKnown) {
    const { view, word } = this.app.state;
    if (view === "model")
      return "Point at a head to see its name; a click, a tap or Enter opens it, Space adds it to those shown.";
    if (isKnown) return word ? "Locked. Escape, or a click on it, unlocks." : "";
    return view === "head"
      ? "Point at a word, or walk with the arrow keys; a click, a tap or Enter locks it."
      : "Point at a cell, or walk with the arrow keys; a click, a tap or Enter locks it.";
  }

  showWeight(panels, word, key) {
    const line = this.part(".read-weight");
    line.hidden = word === null || key === null;
    if (line.hidden) return;
    const weights = panels.map((panel) => this.app.shown.weight(panel, word.index, key));
    const isHeld = weights.every((weight) => weight !== NOT_KEPT);
    const mean = weights.reduce((sum, weight) => sum + weight, 0) / weights.length;
    const text = isHeld ? spellWeight(mean) : "not among the links that this page holds";
    const number = buildElement("strong", { textContent: text });
    number.classList.toggle("small", !isHeld);
    line.replaceChildren(number, " ", buildLabel(this.app.label(word)), " → ",
      buildLabel(this.app.label({ side: "k", index: key })));
  }

  // As on a terminal, the word itself is no answer: it follows the others. Only a square map has one.
  rank(panels, word) {
    const { page, shown } = this.app;
    const all = shown.ranking(panels, word.side, word.index, Infinity);
    const isItself = ({ index }) => page.isSquare && index === word.index;
    const ranked = all.filter((item) => !isItself(item)).slice(0, RANKED);
    const largest = Math.max(...all.map(({ weight }) => weight));
    const lines = [...ranked, ...all.filter(isItself)].map((item) => {
      const line = buildElement("li", {}, this.buildWord({ side: word.side === "q" ? "k" : "q", index: item.index }),
        buildElement("span", { className: "number", textContent: spellWeight(item.weight) }),
        this.buildBar(panels, item, largest));
      line.classList.toggle("itself", isItself(item));
      return line;
    });
    this.part(".ranking").replaceChildren(...lines);
  }

  // A press brings the word into sight. In long texts its place tells it from its like.
  buildWord(word) {
    const { page } = this.app;
    const text = this.app.label(word);
    const button = buildElement("button", { type: "button", className: "go", title: text }, buildLabel(text));
    if (Math.max(page.rows, page.columns) > PLACES_FROM)
      button.append(buildElement("span", { className: "place", textContent: word.index }));
    button.addEventListener("click", () => this.app.view.reach(word));
    return button;
  }

  buildBar(panels, { parts }, largest) {
    const bar = buildElement("span", { className: "bar-of-parts" });
    bar.setAttribute("aria-hidden", "true");
    parts.forEach((part, place) => {
      const piece = buildElement("i", {});
      piece.style.width = `${(100 * part) / panels.length / largest}%`;
      piece.style.background = this.app.controls.color(panels[place]);
      bar.append(piece);
    });
    return bar;
  }

  // The same in a sentence, for who listens.
  sentence(panels, word) {
    const { page, shown } = this.app;
    const ranked = shown.ranking(panels, word.side, word.index, RANKED)
      .filter(({ index }) => !page.isSquare || index !== word.index).slice(0, 3);
    const others = ranked.map(({ index, weight }) => (
      `${this.app.label({ side: word.side === "q" ? "k" : "q", index })} ${spellWeight(weight)}`));
    const verb = word.side === "q" ? "looks at" : "is looked at by";
    return `${this.app.label(word)} ${verb} ${others.join(", ") || "nothing that is shown"}`;
  }

  showLegend(largest) {
    const { page, colors, state } = this.app;
    const { measure, strongest, share, hasNotANumber } = page.data;
    // All measures but the weight are parts of their row.
    const name = measure === null ? "attention weight" : `${measure}, as a share of the row`;
    const find = (selector) => this.legend.querySelector(selector);
    const isLines = state.view === "head";
    find(".legend-title").textContent = isLines
      ? `${name}: the stronger, the bolder a line`
      : `${name}, from 0 to the largest ${state.view === "model" ? "in this map" : "in this head"}`;
    find(".legend-bar").classList.toggle("lines", isLines);
    find(".legend-bar").style.background = isLines ? "" : colors.gradient();
    find(".legend-half").textContent = (largest / 2).toPrecision(2);
    find(".legend-largest").textContent = largest.toPrecision(2);
    find(".legend-not-a-number").hidden = !hasNotANumber || isLines;
    find(".swatch").style.background = colors.css(NaN);
    const kept = find(".legend-kept");
    kept.hidden = !strongest;
    const links = strongest === 1 ? "the strongest link" : `the ${strongest} strongest links`;
    kept.textContent = `To stay small this page holds at most ${links} of each row: ` +
      `${(100 * share).toFixed(0)}% of all weight. What is not held looks like 0.`;
  }
}
