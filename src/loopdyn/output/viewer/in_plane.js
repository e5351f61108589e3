"use strict";
// Kinematics of a planar mechanism and exports of plots: functions of numbers only, which the page draws.
window.inPlane = (() => {
  const plus = (a, b) => a.map((x, k) => x + b[k]);
  const minus = (a, b) => a.map((x, k) => x - b[k]);
  const times = (f, a) => a.map((x) => f * x);
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];

  // Velocity of the point of a body that is at `point`; `motion` has its position, velocity and spin about the normal.
  const velocityAt = (motion, normal, point) => plus(motion.velocity, times(motion.spin, cross(normal, minus(point, motion.position))));

  // Point at which two bodies have the same velocity; null if they do not turn against each other.
  function instantCentre(one, other, normal, slowest) {
    const spin = one.spin - other.spin;
    if (!(Math.abs(spin) > slowest)) return null; // at infinity
    const relative = minus(one.velocity, velocityAt(other, normal, one.position));
    return plus(one.position, times(1 / spin, cross(normal, relative)));
  }

  // ---------------------------------------------------------------------------------------- exports of plots

  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  // Text of a table; `columns` are { name, unit, values }.
  function csv(columns) {
    const head = columns.map(({ name, unit }) => quoted(unit ? `${name} [${unit}]` : name)).join(",");
    const lines = Array.from(columns[0].values, (_, k) => columns.map((c) => (Number.isFinite(c.values[k]) ? String(c.values[k]) : "")).join(","));
    return [head, ...lines].join("\n") + "\n";
  }

  const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  // Picture of lines over x: title, lines { name, colour, dashed, points: [[x, y] or null] }, ticks { at, text } of both axes.
  function svg({ title, lines, box: [left, right, bottom, top], across, below }) {
    const w = 720, h = 420, margin = { left: 70, right: 16, top: 40, bottom: 44 + 18 * Math.ceil(lines.length / 4) };
    const x = (v) => margin.left + ((v - left) / (right - left || 1)) * (w - margin.left - margin.right);
    const y = (v) => margin.top + ((top - v) / (top - bottom || 1)) * (h - margin.top - margin.bottom);
    const at = (v) => v.toFixed(2);
    const out = [`<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" font-family="sans-serif" font-size="12">`,
      `<rect width="${w}" height="${h}" fill="#ffffff"/>`, `<text x="${margin.left}" y="24" font-size="15">${escaped(title)}</text>`];
    for (const { at: v, text } of across) out.push(`<path d="M${margin.left} ${at(y(v))}H${w - margin.right}" stroke="#d5dae0"/><text x="${margin.left - 6}" y="${at(y(v) + 4)}" text-anchor="end">${escaped(text)}</text>`);
    for (const { at: v, text } of below) out.push(`<path d="M${at(x(v))} ${margin.top}V${h - margin.bottom}" stroke="#edf0f3"/><text x="${at(x(v))}" y="${h - margin.bottom + 16}" text-anchor="middle">${escaped(text)}</text>`);
    lines.forEach(({ name, colour, dashed, points }, n) => {
      let pen = "M", d = "";
      for (const p of points) {
        if (p === null) { pen = "M"; continue; }
        d += `${pen}${at(x(p[0]))} ${at(y(p[1]))}`;
        pen = "L";
      }
      const dash = dashed ? ' stroke-dasharray="5 3"' : "";
      out.push(`<path d="${d}" fill="none" stroke="${colour}" stroke-width="1.6"${dash}/>`);
      const [lx, ly] = [margin.left + 160 * (n % 4), h - margin.bottom + 36 + 18 * Math.floor(n / 4)];
      out.push(`<path d="M${lx} ${ly - 4}h18" stroke="${colour}" stroke-width="2.5"${dash}/><text x="${lx + 24}" y="${ly}">${escaped(name)}</text>`);
    });
    return out.join("\n") + "\n</svg>\n";
  }

  return { velocityAt, instantCentre, csv, svg };
})();
