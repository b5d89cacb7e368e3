"use strict";
// Values under the pointer, or along a chart by the arrow keys. Without it every chart still has its table.
for (const figure of document.querySelectorAll("figure.chart")) {
  const svg = figure.querySelector("svg[tabindex]");
  const output = figure.querySelector("output");
  const group = svg && svg.querySelector(".pointer");
  const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
  const [low, high, left, right] = data.x;
  const [bottomValue, topValue, bottom, top_, isLog] = data.y;
  const turned = (value) => (isLog ? Math.log10(value) : value);
  const across = (step) => left + ((step - low) / (high - low)) * (right - left);
  const down = (value) =>
    bottom + ((turned(value) - turned(bottomValue)) / (turned(topValue) - turned(bottomValue))) * (top_ - bottom);
  const nearest = (points, step) => {
    let first = 0, last = points.length - 1;
    while (last - first > 1) {
      const middle = (first + last) >> 1;
      if (points[middle][0] <= step) first = middle; else last = middle;
    }
    return step - points[first][0] <= points[last][0] - step ? points[first] : points[last];
  };
  const draw = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    group.append(made);
  };
  const every = [...new Set(data.series.flatMap((series) => series.points.map((point) => point[0])))].sort((a, b) => a - b);
  let at = 0;
  const show = (step) => {
    group.replaceChildren();
    draw("line", { x1: across(step), x2: across(step), y1: top_, y2: bottom });
    const words = [];
    for (const series of data.series) {
      const points = series.points;
      if (!points.length || step < points[0][0] || step > points[points.length - 1][0]) continue;
      const [where, value] = nearest(points, step);
      draw("circle", { cx: across(where), cy: down(value), r: 4, class: "r" + series.colour });
      words.push(series.name + ": " + value + (where === step ? "" : " at step " + where));
    }
    output.textContent = "step " + step + " | " + words.join(" | ");
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    const step = nearest(every.map((each) => [each]), low + ((x - left) / (right - left)) * (high - low))[0];
    at = every.indexOf(step);
    show(step);
  });
  svg.addEventListener("pointerleave", () => { group.replaceChildren(); output.textContent = ""; });
  svg.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: every.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    at = Math.min(every.length - 1, Math.max(0, moves[event.key]));
    show(every[at]);
  });
}
