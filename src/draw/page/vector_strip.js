// Numbers in figures, and vectors of them as strips.

const SPELLED_NUMBERS = 4; // of a vector, in digits
const STRIP_CELL = 8; // pixels of the canvas, of which the last is a gap
const STRIP_HEIGHT = 32;

function spellNumber(number, digits = 2) {
  if (Number.isNaN(number)) return "not a number";
  const text = number.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

// A number as a factor or a further summand.
function spellFactor(number, digits = 2) {
  const text = spellNumber(number, digits);
  return text.startsWith("−") ? `(${text})` : text;
}

// A vector as cells: the colour and the height of the bar in it say the same.
class VectorStrip {
  constructor(numbers, largest, name, onPoint) {
    this.numbers = numbers;
    this.largest = largest;
    this.canvas = buildElement("canvas", { width: STRIP_CELL * numbers.length, height: STRIP_HEIGHT });
    this.canvas.setAttribute("role", "img");
    const digits = [...numbers.subarray(0, SPELLED_NUMBERS)].map((number) => spellNumber(number));
    const more = numbers.length > SPELLED_NUMBERS;
    this.canvas.setAttribute("aria-label",
      `${name}, ${numbers.length} numbers: ${digits.join(", ")}${more ? " and so on" : ""}`);
    this.canvas.addEventListener("pointermove", (event) => {
      const place = Math.floor((event.offsetX / this.canvas.clientWidth) * numbers.length);
      onPoint(Math.max(0, Math.min(numbers.length - 1, place)));
    });
    this.element = buildElement("div", { className: "made-strip" }, this.canvas,
      buildElement("span", { className: "made-digits" }, `${digits.join("  ")}${more ? "  …" : ""}`));
  }

  draw(marked, colors) {
    const context = this.canvas.getContext("2d");
    const { width, height } = this.canvas;
    const middle = height / 2;
    context.clearRect(0, 0, width, height);
    this.numbers.forEach((number, i) => {
      const part = this.largest ? number / this.largest : 0;
      context.fillStyle = part < 0 ? colors.negative : colors.positive;
      context.globalAlpha = 0.08 + 0.42 * Math.abs(part);
      context.fillRect(STRIP_CELL * i, 0, STRIP_CELL - 1, height);
      context.globalAlpha = 1;
      context.fillRect(STRIP_CELL * i, Math.min(middle, middle - part * middle), STRIP_CELL - 1,
        Math.max(1, Math.abs(part) * middle));
    });
    context.strokeStyle = colors.ink;
    context.lineWidth = 2;
    context.strokeRect(STRIP_CELL * marked + 0.5, 1, STRIP_CELL - 1, height - 2);
  }
}
