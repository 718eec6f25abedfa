// Colours that can be told apart with any kind of colour vision (after Okabe and Ito), lightness varied with hue.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8f7a5c"];
const OTHER = "#9aa0a8";

// Groups by weight: the heaviest get a colour each, the rest share grey. Where there are few, colours go by name, so that
// the same groups look the same in every report.
function colourOfGroups({ weights, keys }) {
  const order = weights.map((_, group) => group).sort((a, b) => weights[b] - weights[a] || a - b);
  const colours = new Uint8Array(weights.length).fill(COLOURS.length);
  const coloured = order.slice(0, COLOURS.length);
  if (order.length <= COLOURS.length) coloured.sort((a, b) => (keys[a] < keys[b] ? -1 : 1));
  coloured.forEach((group, place) => { colours[group] = place; });
  return { colours, order };
}

function colourText(colour) {
  return COLOURS[colour] ?? OTHER;
}
