// Bytes alive and reserved over the same stretch of time as the map shows.
const curvesCanvas = document.getElementById("curves");

function drawCurves() {
  const { pen, height } = prepareCanvas(curvesCanvas);
  const whole = mapView();
  const reach = Math.max(1, ...curveLines().flatMap(({ points }) => points.map(([, bytes]) => bytes)), run().bound);
  const view = { ...whole, y0: 0, y1: reach * 1.06, height: height - BOTTOM };
  const screen = toScreen(view);
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, 0, view.width, view.height);
  pen.clip();
  for (const line of curveLines()) drawCurve(pen, view, line);
  if (run().bound > 0) {
    pen.strokeStyle = cssColour("--warn");
    pen.setLineDash([6, 4]);
    pen.beginPath();
    pen.moveTo(LEFT, screen.y(run().bound));
    pen.lineTo(LEFT + view.width, screen.y(run().bound));
    pen.stroke();
    pen.setLineDash([]);
  }
  const x = Math.round(screen.x(chosenMoment())) + 0.5;
  pen.strokeStyle = cssColour("--accent");
  pen.setLineDash([4, 3]);
  pen.beginPath();
  pen.moveTo(x, 0);
  pen.lineTo(x, view.height);
  pen.stroke();
  pen.restore();
  drawAddresses(pen, view, 3);
  drawTimes(pen, view, height);
}

// Steps: the amount stays until the next point.
function drawCurve(pen, view, { points, colour, filled }) {
  if (points.length === 0) return;
  const screen = toScreen(view);
  pen.beginPath();
  let y = screen.y(filled ? 0 : points[0][1]);
  pen.moveTo(screen.x(points[0][0]), y);
  for (const [time, bytes] of points) {
    const x = screen.x(time);
    pen.lineTo(x, y);
    y = screen.y(bytes);
    pen.lineTo(x, y);
  }
  pen.lineTo(LEFT + view.width, y);
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5;
  pen.stroke();
  if (filled) {
    pen.lineTo(LEFT + view.width, screen.y(0));
    pen.globalAlpha = 0.2;
    pen.fillStyle = colour;
    pen.fill();
    pen.globalAlpha = 1;
  }
}

function curveLines() {
  const current = run();
  const lines = scene.runs.length > 1
    ? scene.runs.map((one, i) => ({ name: `alive in ${one.name}`, points: one.live, colour: COLOURS[i === 0 ? 1 : 0], filled: one === current }))
    : [{ name: "alive", points: current.live, colour: COLOURS[0], filled: true }];
  if (current.reserved.length > 0) lines.push({ name: "reserved as recorded", points: current.reserved, colour: COLOURS[5] });
  const [from, to] = current.span;
  const total = model.layout.heights.reduce((sum, height) => sum + height, 0);
  if (total > 0 && model.layout.origin !== "no reuse") {
    lines.push({ name: `${model.layout.origin}: ${bytesText(total)}`, points: [[from, total], [to, total]], colour: COLOURS[2] });
  }
  return lines;
}
