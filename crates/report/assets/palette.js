// Colours that can be told apart with any kind of colour vision (after Okabe and Ito), lightness varied with hue.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8f7a5c"];
const OTHER = "#9aa0a8";

// Groups by weight: the heaviest get a colour each, the rest share grey. Where groups have an order (sizes), colours
// follow it.
function colourOfGroups(weights) {
  const order = weights.map((_, group) => group).sort((a, b) => weights[b] - weights[a] || a - b);
  const colours = new Uint8Array(weights.length).fill(COLOURS.length);
  order.slice(0, COLOURS.length).forEach((group, place) => { colours[group] = place; });
  return { colours, order };
}

function colourText(colour) {
  return COLOURS[colour] ?? OTHER;
}
