// The sequential scale of weights that came with the map, for light and dark surfaces.

const LEVELS = 256;

class WeightColors {
  constructor(hex) {
    this.levels = new Uint32Array(LEVELS + 1); // the last: not a number
    for (let i = 0; i <= LEVELS; i++) this.levels[i] = parseInt(hex.slice(6 * i, 6 * i + 6), 16);
  }

  level(weight, largest) {
    if (Number.isNaN(weight)) return this.levels[LEVELS];
    const part = largest > 0 ? Math.max(0, Math.min(1, weight / largest)) : 0;
    return this.levels[Math.round(part * (LEVELS - 1))];
  }

  css(weight, largest) {
    return `#${this.level(weight, largest).toString(16).padStart(6, "0")}`;
  }

  gradient() {
    const stops = Array.from({ length: 25 }, (_, i) => this.css(i, 24));
    return `linear-gradient(90deg, ${stops.join(", ")})`;
  }

  // One pixel a weight, row by row.
  paint(canvas, weights, largest) {
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    weights.forEach((weight, i) => {
      const color = this.level(weight, largest);
      image.data[4 * i] = color >> 16;
      image.data[4 * i + 1] = (color >> 8) & 255;
      image.data[4 * i + 2] = color & 255;
      image.data[4 * i + 3] = 255;
    });
    context.putImageData(image, 0, 0);
  }
}
