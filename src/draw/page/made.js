// "How it is made": one word in one head, from query and keys to its weights and its output.

const MADE_KEYS = 8; // shown one by one; the rest is summed up

const MADE_STEPS = ["Query", "Key", "Score", "Scale", "Softmax", "Weighted value"];
const [STEP_QUERY, STEP_KEY, STEP_SCORE, STEP_SCALE, STEP_SOFTMAX, STEP_VALUE] = MADE_STEPS.keys();

class MadeStrip {
  constructor(section) {
    this.section = section;
    // Radio buttons of one name are one choice in the whole document.
    this.name = `made-key-${section.closest(".attention-map").dataset.attention}`;
    this.step = STEP_QUERY;
    this.place = 0; // of the number that is spelled out
    section.classList.add("made");
    section.hidden = true;
    this.build();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  build() {
    if (!this.section.querySelector("h2")) this.section.append(buildElement("h2", { textContent: "How it is made" }));
    this.hint = buildElement("p", { className: "made-hint hint" });
    this.subject = buildElement("p", { className: "made-subject" });
    this.steps = buildElement("ol", { className: "made-steps" });
    this.steps.setAttribute("aria-label", "Steps: arrow keys move");
    MADE_STEPS.forEach((name, step) => {
      const button = buildElement("button", { type: "button", className: "button", textContent: `${step + 1} ${name}` });
      button.addEventListener("click", () => this.go(step));
      this.steps.append(buildElement("li", {}, button));
    });
    this.steps.addEventListener("keydown", (event) => this.press(event));
    this.previous = buildElement("button", { type: "button", textContent: "Previous", className: "button made-previous" });
    this.next = buildElement("button", { type: "button", textContent: "Next", className: "button made-next" });
    this.previous.addEventListener("click", () => this.go(this.step - 1));
    this.next.addEventListener("click", () => this.go(this.step + 1));
    this.words = buildElement("p", { className: "made-words" });
    this.formula = buildElement("p", { className: "made-formula" });
    const said = buildElement("div", { className: "made-said" }, this.words, this.formula);
    said.setAttribute("aria-live", "polite");
    this.pictures = buildElement("div", { className: "made-pictures" });
    this.check = buildElement("p", { className: "made-check hint" });
    this.body = buildElement("div", { className: "made-body", hidden: true }, this.subject,
      buildElement("div", { className: "made-walk" }, this.previous, this.steps, this.next), said, this.pictures,
      this.check);
    this.section.append(this.hint, this.body);
  }

  setPage(page) {
    this.page = page;
    this.hasHeads = page.panels.some(({ layer, head }) => layer !== MEAN && head !== MEAN);
    this.vectors = page.data.vectors && this.hasHeads ? new HeadVectors(page.data.vectors) : null;
    this.hide();
  }

  hide() {
    this.section.hidden = !this.vectors && !(this.hasHeads && this.page.data.vectorsLeftOut);
    this.say("Choose one head of a layer, and click a word that looks: "
      + "here you see step by step how its weights are made.");
  }

  say(sentence) {
    this.body.hidden = true;
    this.hint.hidden = false;
    this.hint.textContent = this.vectors ? sentence
      : "This text is too long for a page to carry the queries, keys and values that its weights are made of.";
  }

  show(layer, head, row) {
    const isShown = !this.body.hidden && layer === this.layer && head === this.head && row === this.row;
    if (isShown) return;
    this.hide();
    if (!this.vectors) return;
    if (layer === MEAN || head === MEAN) {
      this.say("A mean of heads is made of several: choose one head to see how its weights are made.");
      return;
    }
    Object.assign(this, { layer, head, row, token: this.vectors.rowTokens[row], key: null });
    this.hint.hidden = true;
    this.body.hidden = false;
    this.compute();
  }

  compute() {
    this.made = this.vectors.attend(this.layer, this.head, this.token);
    const { weights } = this.made;
    this.order = [...weights.keys()].sort((a, b) => weights[b] - weights[a] || a - b).slice(0, MADE_KEYS);
    if (!this.order.includes(this.key)) this.key = this.order.find((key) => this.isOther(key)) ?? this.order[0];
    this.strips = [];
    this.showSubject();
    this.pictures.replaceChildren(this.numberPicture(), this.table());
    this.go(this.step);
  }

  // Worth following: another word, and none that the model adds.
  isOther(key) {
    const column = this.columnOf(key);
    return column !== null && column !== this.row && !this.page.columnIsSpecial[column];
  }

  // What the section is about, and the choice of a piece where the word has several.
  showSubject() {
    const pieces = this.vectors.tokensOf(this.row);
    const { tokens } = this.vectors;
    this.subject.replaceChildren(buildLabel(tokens[this.token]), ` in ${spellPanel(this)}`);
    if (pieces.length < 2) return;
    const choice = buildElement("select", {}, ...pieces.map((piece) => buildElement("option", {
      value: piece, textContent: tokens[piece], selected: piece === this.token })));
    choice.addEventListener("change", () => { this.token = Number(choice.value); this.compute(); });
    this.subject.append(`, one of the ${pieces.length} pieces of its word; a word's weights are the mean of theirs. `,
      buildElement("label", {}, "Piece ", choice));
  }

  // Pictures: the strip of the query, a row of the table for each key, the strip of the output.

  strip(numbers, largest, name) {
    const strip = new VectorStrip(numbers, largest, name, (place) => this.point(place));
    this.strips.push(strip);
    return strip.element;
  }

  // The query above the keys and the output below the values, so that their numbers stand in columns.
  table() {
    const { made, order } = this;
    const label = () => buildLabel(this.vectors.tokens[this.token]);
    const rest = made.weights.length - order.length;
    const heads = ["", "vector", "q · k", "scaled", "weight", "vector of the value"];
    const head = this.line("th", "", heads.map((name) => [name]));
    const query = this.line("td", STEP_QUERY, [["query of ", label()], [this.vectorOf("queries", this.token)]]);
    const keys = order.map((key) => this.line("td", STEP_KEY, [
      [this.keyChoice(key)], [this.vectorOf("keys", key)], [spellNumber(made.scores[key])],
      [spellNumber(made.scaled[key])], this.weightBar(made.weights[key]), [this.vectorOf("values", key)]]));
    const left = 1 - order.reduce((sum, key) => sum + made.weights[key], 0);
    const others = this.line("td", STEP_KEY, [[rest === 1 ? "1 other key" : `${rest} other keys`], [], [], [],
      this.weightBar(left), []]);
    const output = this.line("td", STEP_VALUE, [["output for ", label()], [], [], [], [],
      [this.strip(made.output, this.largestOf("values"), `output for ${this.vectors.tokens[this.token]}`)]]);
    const which = rest ? `The ${order.length} strongest of ${made.weights.length} keys` : "All keys";
    const hasPieces = this.vectors.rowTokenCounts.some((count) => count > 1);
    const pieces = hasPieces ? " A word in pieces has a key for each." : "";
    const caption = buildElement("p", { className: "made-caption",
      textContent: `${which}; the formula follows the chosen one.${pieces}` });
    caption.dataset.from = STEP_KEY;
    return buildElement("div", { className: "made-keys" }, caption, buildElement("table", {},
      buildElement("thead", {}, head), buildElement("tbody", {}, query, ...keys, ...(rest ? [others] : []), output)));
  }

  // A line of the table, seen from a step on, as are its cells.
  line(tag, from, cells) {
    const steps = [STEP_QUERY, STEP_QUERY, STEP_SCORE, STEP_SCALE, STEP_SOFTMAX, STEP_VALUE];
    const line = buildElement("tr", {}, ...cells.map((children, i) => {
      const cell = buildElement(i ? tag : "th", { scope: tag === "th" ? "col" : "row" }, ...children);
      cell.dataset.from = steps[i];
      return cell;
    }));
    line.dataset.from = from || STEP_QUERY;
    return line;
  }

  numberPicture() {
    const { d } = this.vectors;
    this.place = Math.min(this.place, d - 1);
    this.slider = buildElement("input", { type: "range", min: 1, max: d, value: this.place + 1 });
    this.slider.addEventListener("input", () => this.point(this.slider.value - 1));
    this.number = buildElement("output", { className: "made-number" });
    return buildElement("div", { className: "made-place" }, buildElement("label", {}, "number ", this.slider), this.number);
  }

  keyChoice(key) {
    const radio = buildElement("input", { type: "radio", name: this.name, value: key, checked: key === this.key });
    radio.addEventListener("change", () => { this.key = key; this.go(this.step); });
    return buildElement("label", {}, radio, buildLabel(this.vectors.tokens[key]),
      buildElement("small", { textContent: String(key), title: `token ${key}` }));
  }

  vectorOf(kind, token) {
    const name = { queries: "query", keys: "key", values: "value" }[kind];
    return this.strip(this.numbersOf(kind, token), this.largestOf(kind), `${name} of ${this.vectors.tokens[token]}`);
  }

  numbersOf(kind, token) {
    return this.vectors.of(kind, this.layer, this.head, token);
  }

  // Of the vectors shown: strips of a kind have one scale.
  largestOf(kind) {
    const tokens = kind === "queries" ? [this.token] : this.order;
    return Math.max(...tokens.map((token) => this.numbersOf(kind, token).reduce((a, b) => Math.max(a, Math.abs(b)), 0)));
  }

  weightBar(weight) {
    const bar = buildElement("i", { className: "made-bar" });
    bar.style.width = `${(100 * Math.max(0, weight)).toFixed(2)}%`;
    return [buildElement("span", { className: "made-track" }, bar), spellNumber(weight, 4)];
  }

  // Steps.

  press(event) {
    const to = { ArrowLeft: this.step - 1, ArrowRight: this.step + 1, Home: 0, End: MADE_STEPS.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.go(to);
    this.steps.children[this.step].firstChild.focus();
  }

  go(step) {
    this.step = Math.max(0, Math.min(MADE_STEPS.length - 1, step));
    [...this.steps.children].forEach(({ firstChild }, i) => {
      firstChild.tabIndex = i === this.step ? 0 : -1;
      if (i === this.step) firstChild.setAttribute("aria-current", "step");
      else firstChild.removeAttribute("aria-current");
    });
    // A button that has the focus keeps it: it is not disabled, but has nothing to do.
    this.previous.setAttribute("aria-disabled", this.step === 0);
    this.next.setAttribute("aria-disabled", this.step === MADE_STEPS.length - 1);
    for (const part of this.pictures.querySelectorAll("[data-from]")) {
      part.hidden = part.dataset.from > this.step;
      // Narrow screens have room for what this step makes and what it is made of.
      part.classList.toggle("made-past", part.cellIndex > 0 && part.dataset.from < this.step - 1);
      part.classList.toggle("made-new", Number(part.dataset.from) === this.step);
    }
    const [words, formula] = this.explain()[this.step];
    this.words.replaceChildren(...words);
    this.formula.replaceChildren(...formula);
    this.point(this.place);
    this.showCheck();
  }

  // For each step a sentence and a formula, as lists of texts and labels.
  explain() {
    const { made, key, vectors } = this;
    const { d, scale, tokens } = vectors;
    const it = () => buildLabel(tokens[this.token]);
    const other = () => buildLabel(tokens[key]);
    const vector = (numbers) => `(${[...numbers.subarray(0, SPELLED_NUMBERS)].map((number) => spellNumber(number)).join(", ")}` +
      `${d > SPELLED_NUMBERS ? ", …" : ""})`;
    const keyVector = this.numbersOf("keys", key);
    const products = [...made.query.subarray(0, 3)]
      .map((number, i) => `${spellFactor(number)}·${spellFactor(keyVector[i])}`);
    const root = Math.abs(scale * Math.sqrt(d) - 1) < 1e-5 ? `1/√${d} = ${spellNumber(made.scores[key])} × ` : "";
    const values = this.followed()
      .flatMap((one, i) => [`${i ? " + " : ""}${spellNumber(made.weights[one], 3)}·v(`, buildLabel(tokens[one]), ")"]);
    return [
      [["What ", it(), ` asks for: ${d} numbers that the head makes of the word as it stands in this layer.`],
        ["q = ", vector(made.query)]],
      [["Each word", ...(vectors.causal ? [" up to ", it()] : []), " has a key: what it can be found by."],
        ["k(", other(), ") = ", vector(keyVector)]],
      [["A key's score: its numbers times those of the query, added up. It is large where both point the same way."],
        ["q·k = ", products.join(" + "), d > 3 ? " + …" : "", ` = ${spellNumber(made.scores[key])}`]],
      [["Scores grow with the count of numbers, so they are scaled."],
        [`s = ${spellNumber(made.scores[key])} × ${root}${spellNumber(scale, 4)} = ${spellNumber(made.scaled[key])}`]],
      [["Softmax makes weights that are above 0 and add up to 1. ",
        `m = ${spellNumber(made.largest)} is the largest of the ${made.weights.length} scaled scores, `,
        `l = ${spellNumber(made.sum)} the sum of e^(s − m) over them.`],
      [`e^(s − m)/l = e^(${spellNumber(made.scaled[key])} − ${spellFactor(made.largest)})/${spellNumber(made.sum)} = `,
        spellNumber(made.weights[key], 3)]],
      [["Each word's value, times its weight, added up: what this head hands on for ", it(), "."],
        [...values, this.order.length > 2 ? " + …" : "", " = ", vector(made.output)]],
    ];
  }

  // The chosen key, and the strongest beside it.
  followed() {
    return [this.key, ...this.order.filter((key) => key !== this.key)].slice(0, 2);
  }

  // The page's own number beside that of the vectors, where it is a weight.
  showCheck() {
    const { page, vectors, row } = this;
    this.check.replaceChildren();
    if (this.step < STEP_SOFTMAX) return;
    if (page.data.measure !== null) {
      this.check.textContent = `This is the attention weight; the views show another measure: ${page.data.measure}.`;
      return;
    }
    const column = this.columnOf(this.key);
    const panel = page.panelIndex(this.layer, this.head);
    const own = column === null || panel < 0 ? NOT_KEPT : page.weight(panel, row, column);
    if (own === NOT_KEPT) return;
    const rows = page.data.renormalized ? page.data.rows.length : null;
    const made = vectors.wordWeight(this.layer, this.head, row, column, rows);
    this.check.append("The model's own weight from ", buildLabel(page.data.rows[row]), " to ",
      buildLabel(page.data.rows[column]), `: ${spellNumber(own, 4)}; of the vectors here: ${spellNumber(made, 4)}.`);
  }

  // The word that a token is of; null where columns are other words than rows.
  columnOf(token) {
    if (this.page.data.columns) return null;
    const { rowTokens, rowTokenCounts } = this.vectors;
    const column = rowTokens.findIndex((first, row) => token >= first && token < first + rowTokenCounts[row]);
    return column < 0 ? null : column;
  }

  // Spells out one place of all vectors.
  point(place) {
    this.place = place;
    const { made, key } = this;
    const mine = made.query[place];
    const other = this.numbersOf("keys", key)[place];
    const parts = [`${place + 1}: query ${spellNumber(mine)}`];
    if (this.step === STEP_KEY) parts.push(`, key ${spellNumber(other)}`);
    if (this.step === STEP_VALUE) {
      const value = (one) => this.numbersOf("values", one)[place];
      const terms = this.followed().map((one) => `${spellNumber(made.weights[one], 3)}·${spellFactor(value(one))}`);
      parts.splice(0, 1, `${place + 1}: ${terms.join(" + ")}${made.weights.length > 2 ? " + …" : ""} = `,
        spellNumber(made.output[place]));
    } else if (this.step > STEP_KEY) {
      parts.push(` × key ${spellFactor(other)} = ${spellNumber(mine * other)}`);
    }
    this.number.textContent = parts.join("");
    this.slider.value = place + 1;
    this.slider.setAttribute("aria-valuetext", this.number.textContent);
    this.draw();
  }

  draw() {
    if (this.body.hidden) return;
    const style = getComputedStyle(this.section);
    const color = (name) => style.getPropertyValue(name).trim();
    const colors = { positive: color("--made-positive"), negative: color("--made-negative"), ink: color("--ink") };
    for (const strip of this.strips) strip.draw(this.place, colors);
  }
}
