// The form of a page that is served: a text is sent to where the page came from, and the answer shown.

const ASK_KEYS = ["text", "pair", "measure"]; // of the fragment, so that a view of a text can be sent

class AskForm {
  // onData(data) gets each answer, an object as in page_data.h.
  constructor(form, onData) {
    this.form = form;
    this.onData = onData;
    this.text = form.querySelector("textarea[name=text]");
    this.pair = form.querySelector("textarea[name=pair]");
    this.measure = form.querySelector("select[name=measure]");
    this.button = form.querySelector("button");
    this.status = form.querySelector(".ask-status");
    this.error = form.querySelector(".ask-error");
    this.button.title = "Ctrl+Enter in a text does the same";
    form.addEventListener("submit", (event) => { event.preventDefault(); this.ask(); });
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.ask();
    });
    addEventListener("hashchange", () => this.follow());
    this.follow();
  }

  // Asks for what the fragment says, where that is not what is shown.
  follow() {
    const fragment = new URLSearchParams(location.hash.slice(1));
    const question = this.question((name) => fragment.get(name) ?? "");
    if (!question.text || JSON.stringify(question) === this.asked) return;
    this.text.value = question.text;
    this.pair.value = question.pair ?? "";
    this.pair.closest("details").open = this.pair.value !== "";
    this.measure.value = question.measure;
    this.ask();
  }

  // Where nothing is asked for yet, the text waits for what is typed.
  invite() {
    if (!this.asked) this.text.focus();
  }

  question(read) {
    const question = { text: read("text"), measure: read("measure") };
    const measures = [...this.measure.options].map((option) => option.value);
    if (!measures.includes(question.measure)) question.measure = measures[0];
    if (read("pair")) question.pair = read("pair");
    return question;
  }

  async ask() {
    if (this.button.disabled) return;
    const question = this.question((name) => this[name].value);
    this.asked = JSON.stringify(question);
    this.error.textContent = "";
    if (!question.text.trim()) {
      this.fail("Type a text first.");
      return;
    }
    this.wait(true);
    try {
      this.show(question, await this.send());
    } catch (error) {
      this.fail(error.message);
    } finally {
      this.wait(false);
    }
  }

  async send() {
    const answer = await fetch("look", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: this.asked }).catch(() => {
      throw new Error("There is no answer: is attn serve still running?");
    });
    const data = await answer.json().catch(() => ({ error: `The answer cannot be read (HTTP ${answer.status}).` }));
    if (data.error !== undefined || !answer.ok) throw new Error(data.error ?? `HTTP ${answer.status}`);
    return data;
  }

  show(question, data) {
    const fragment = new URLSearchParams(location.hash.slice(1));
    for (const key of ASK_KEYS) {
      if (question[key]) fragment.set(key, question[key]);
      else fragment.delete(key);
    }
    history.replaceState(null, "", `#${fragment}`);
    this.form.querySelector(".ask-about").hidden = true;
    this.onData(data);
    const words = data.rows.length - data.rowSpecial.length;
    this.status.textContent = words === 1 ? "1 word." : `${words} words.`;
  }

  fail(message) {
    this.status.textContent = "";
    this.error.textContent = message;
  }

  // Fields keep what they hold, and the focus: only the button is out of use.
  wait(runs) {
    this.button.disabled = runs;
    this.form.setAttribute("aria-busy", runs);
    if (runs) this.status.textContent = "The model reads the text …";
  }
}
