// All that a reader chose, kept in the URL's fragment so that a view can be sent:
// #view=matrix&heads=L4H7.L4H3&word=q5&key=2&hide=first&show=special&renormalize=1&least=0.05&links=8&zoom=20
// A document's second map has its keys begin with "2.". Keys of others are left alone.

const VIEWS = ["head", "model", "matrix"];
const STATE_KEYS = ["view", "heads", "layer", "word", "key", "hide", "show", "renormalize", "least", "links", "zoom"];
const USUAL_LINKS = 5;
const ZOOM_LEAST = 2; // pixels a cell
const ZOOM_MOST = 60;
const HEADS_IN_ONE_GROUP = 16;

class State {
  constructor(number, page) {
    this.prefix = number > 1 ? `${number}.` : "";
    this.page = page;
    this.groups = this.makeGroups();
    this.read();
  }

  // Heads to choose from side by side: all where they are few or means alone, else those of one layer.
  makeGroups() {
    const { panels } = this.page;
    const every = panels.map((_, panel) => panel);
    const isFew = panels.length <= HEADS_IN_ONE_GROUP || panels.every(({ head }) => head === MEAN);
    if (isFew) return [{ layer: null, panels: every }];
    const layers = [...new Set(panels.map(({ layer }) => layer))];
    return layers.map((layer) => ({ layer, panels: every.filter((panel) => panels[panel].layer === layer) }));
  }

  groupOf(panel) {
    return this.groups.findIndex(({ panels }) => panels.includes(panel));
  }

  // The head that views of one head show: the one chosen last.
  get active() {
    return this.heads.length ? this.heads[this.heads.length - 1] : this.groups[this.group].panels[0];
  }

  get filter() {
    const { hideSpecial, hideFirst, renormalize, least, links } = this;
    return { hideSpecial, hideFirst, renormalize, least, linksAWord: links };
  }

  read() {
    const given = new URLSearchParams(location.hash.slice(1));
    const get = (key) => given.get(this.prefix + key);
    this.view = VIEWS.includes(get("view")) ? get("view") : VIEWS[0];
    this.readHeads(get("heads"), get("layer"));
    this.readWord(get("word"), get("key"));
    // Tokens that the model adds draw most of the attention, and say least: they wait to be asked for.
    this.hideSpecial = this.page.hasSpecial && get("show") !== "special";
    this.hideFirst = get("hide") === "first";
    this.renormalize = get("renormalize") === "1";
    this.least = this.number(get("least"), 0, 1, 0);
    this.links = Math.round(this.number(get("links"), 0, this.page.columns, USUAL_LINKS));
    this.zoom = Math.round(this.number(get("zoom"), ZOOM_LEAST, ZOOM_MOST, 0));
  }

  readHeads(codes, layer) {
    const known = new Map(this.page.panels.map((panel, i) => [codePanel(panel), i]));
    const chosen = (codes || "").split(".").filter((code) => known.has(code)).map((code) => known.get(code));
    this.group = Math.max(0, this.groups.findIndex((group) => String(group.layer) === layer));
    if (chosen.length) this.group = this.groupOf(chosen[chosen.length - 1]);
    else if (codes !== "none") chosen.push(this.groups[this.group].panels[0]);
    this.heads = [...new Set(chosen)].filter((panel) => this.groupOf(panel) === this.group);
  }

  readWord(word, key) {
    const [, side, index] = /^([qk])(\d{1,6})$/.exec(word || "") || [];
    const count = side === "q" ? this.page.rows : this.page.columns;
    this.word = side && Number(index) < count ? { side, index: Number(index) } : null;
    const isKey = this.word && side === "q" && /^\d{1,6}$/.test(key || "") && Number(key) < this.page.columns;
    this.key = isKey ? Number(key) : null;
  }

  number(text, least, most, usual) {
    const number = text === null || text === "" ? NaN : Number(text);
    return number >= least && number <= most ? number : usual;
  }

  // What differs from how a page opens.
  entries() {
    const isUsual = this.heads.length === 1 && this.heads[0] === this.groups[0].panels[0];
    const heads = this.heads.map((panel) => codePanel(this.page.panels[panel])).join(".") || "none";
    return {
      view: this.view === VIEWS[0] ? null : this.view,
      heads: isUsual ? null : heads,
      layer: this.heads.length || this.groups.length < 2 ? null : this.groups[this.group].layer,
      word: this.word && this.word.side + this.word.index,
      key: this.key,
      hide: this.hideFirst ? "first" : null,
      show: this.page.hasSpecial && !this.hideSpecial ? "special" : null,
      renormalize: this.renormalize ? 1 : null,
      least: this.least ? Number(this.least.toPrecision(3)) : null,
      links: this.links === USUAL_LINKS ? null : this.links,
      zoom: this.zoom || null,
    };
  }

  write() {
    const all = new URLSearchParams(location.hash.slice(1));
    const entries = this.entries();
    for (const key of STATE_KEYS) {
      if (entries[key] === null) all.delete(this.prefix + key);
      else all.set(this.prefix + key, entries[key]);
    }
    const fragment = all.toString();
    if (fragment === location.hash.slice(1)) return;
    try {
      history.replaceState(history.state, "", fragment ? `#${fragment}` : location.pathname + location.search);
    } catch {
      // A browser that is asked too often, or a frame without a URL: the view works, it is not kept.
    }
  }
}
