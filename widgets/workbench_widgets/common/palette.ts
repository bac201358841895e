// Colours that colour-blind people can tell apart (Okabe and Ito, "Color Universal Design", 2008), each with a
// hatch that says the same without colour.

export type Hatch = "none" | "diagonal" | "back" | "cross" | "dots" | "horizontal" | "vertical";

export interface Swatch {
  readonly color: string;
  readonly hatch: Hatch;
}

const COLORS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"] as const;
const HATCHES: readonly Hatch[] = ["none", "diagonal", "dots", "back", "horizontal", "cross", "vertical"];

/** The swatch of a category; after seven the same colours come with other hatches. */
export function swatch(index: number): Swatch {
  const round = Math.floor(index / COLORS.length);
  return {
    color: COLORS[index % COLORS.length]!,
    hatch: HATCHES[(index + round) % HATCHES.length]!,
  };
}

// Cividis (Nuñez, Anderton, Renslow 2018): even steps of lightness for every kind of colour vision.
const RAMP: readonly (readonly [number, number, number])[] = [
  [0, 34, 78], [33, 58, 108], [76, 84, 108], [108, 110, 114], [139, 138, 120],
  [173, 167, 115], [210, 198, 99], [254, 232, 56],
];

/** The colour of a value between 0 and 1. */
export function ramp(share: number): string {
  const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const low = Math.min(Math.floor(place), RAMP.length - 2);
  const part = place - low;
  const [a, b] = [RAMP[low]!, RAMP[low + 1]!];
  const mixed = a.map((value, index) => Math.round(value + (b[index]! - value) * part));
  return `rgb(${mixed.join(",")})`;
}

/** Black or white, whichever reads better on a colour of the ramp. */
export function inkOn(share: number): string {
  return share > 0.55 ? "#000" : "#fff";
}

/** A pattern for canvas fills: the hatch in one colour on nothing. */
export function hatchPattern(
  context: CanvasRenderingContext2D,
  hatch: Hatch,
  color: string,
  scale = 1,
): CanvasPattern | null {
  if (hatch === "none") return null;
  const size = Math.max(4, Math.round(8 * scale));
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const pen = tile.getContext("2d");
  if (!pen) return null;
  pen.strokeStyle = pen.fillStyle = color;
  pen.lineWidth = Math.max(1, scale);
  const line = (x1: number, y1: number, x2: number, y2: number) => {
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x2, y2);
    pen.stroke();
  };
  const corners = (sign: 1 | -1) => {
    for (const shift of [-size, 0, size]) {
      if (sign === 1) line(shift, size, shift + size, 0);
      else line(shift, 0, shift + size, size);
    }
  };
  if (hatch === "diagonal" || hatch === "cross") corners(1);
  if (hatch === "back" || hatch === "cross") corners(-1);
  if (hatch === "horizontal") line(0, size / 2, size, size / 2);
  if (hatch === "vertical") line(size / 2, 0, size / 2, size);
  if (hatch === "dots") {
    pen.beginPath();
    pen.arc(size / 2, size / 2, Math.max(1, 1.2 * scale), 0, 2 * Math.PI);
    pen.fill();
  }
  return context.createPattern(tile, "repeat");
}

/** The hatch as a CSS background image, for legends. */
export function hatchCss(hatch: Hatch, color: string): string {
  switch (hatch) {
    case "none":
      return "none";
    case "diagonal":
      return `repeating-linear-gradient(135deg, ${color} 0 1px, transparent 1px 5px)`;
    case "back":
      return `repeating-linear-gradient(45deg, ${color} 0 1px, transparent 1px 5px)`;
    case "cross":
      return `${hatchCss("diagonal", color)}, ${hatchCss("back", color)}`;
    case "horizontal":
      return `repeating-linear-gradient(0deg, ${color} 0 1px, transparent 1px 5px)`;
    case "vertical":
      return `repeating-linear-gradient(90deg, ${color} 0 1px, transparent 1px 5px)`;
    case "dots":
      return `radial-gradient(${color} 1px, transparent 1.2px) 0 0 / 5px 5px`;
  }
}
