"use strict";
// Values at the pointer and at the arrow keys. The page is whole without this: every chart has its table.
(() => {
  const text = (value, percent) => {
    if (value === null || value === undefined) return "–";
    if (!percent) return String(Number(value.toPrecision(8)));
    return value > 0 && value < 1e-6 ? "<0.0001%" : `${Number((100 * value).toPrecision(3))}%`;
  };

  const element = (name, parent, content) => {
    const made = document.createElement(name);
    if (content !== undefined) made.textContent = content;
    parent.append(made);
    return made;
  };

  // A box beside a place of the area, in percent of its width and height.
  const tipOf = (area) => {
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    area.append(tip);
    return {
      show(fill, x, y) {
        tip.replaceChildren();
        fill(tip);
        tip.hidden = false;
        const wide = area.clientWidth, own = tip.offsetWidth, at = (x / 100) * wide;
        let left = at + 12;
        if (left + own > wide) left = at - own - 12;
        if (left < 0) left = Math.max(-8, Math.min(at - own / 2, wide - own));
        tip.style.left = `${left}px`;
        tip.style.top = `${Math.max(0, Math.min(area.clientHeight - tip.offsetHeight, (y / 100) * area.clientHeight))}px`;
        return [...tip.children].map((line) => line.textContent.trim()).join(", ");
      },
      hide() { tip.hidden = true; },
    };
  };

  // The arrow keys of an area, which is a slider to a screen reader: it says what stands there.
  const keys = (area, count, move, leave) => {
    area.tabIndex = 0;
    area.setAttribute("role", "slider");
    area.setAttribute("aria-valuemin", "0");
    area.setAttribute("aria-valuemax", String(Math.max(0, count - 1)));
    area.setAttribute("aria-valuenow", "0");
    area.setAttribute("aria-valuetext", "use the arrow keys");
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { leave(); return; }
      if (move(event.key)) event.preventDefault();
    });
    area.addEventListener("blur", leave);
  };

  const lines = (figure, data) => {
    const area = figure.querySelector(".area");
    const tip = tipOf(area);
    const hair = element("div", area);
    hair.className = "hair";
    hair.hidden = true;
    const [low, high] = data.log ? [Math.log10(data.low), Math.log10(data.high)] : [data.low, data.high];
    const place = (x) => (100 * ((data.log ? Math.log10(x) : x) - low)) / (high - low);
    const places = data.x.map(place);
    let current = -1;

    const show = (k, at) => {
      current = k;
      const x = at === undefined ? places[k] : at;
      const shown = at === undefined || !data.step ? data.x[k] : low + ((high - low) * at) / 100;
      hair.style.left = `${x}%`;
      hair.hidden = false;
      const said = tip.show((box) => {
        element("b", element("div", box), `${data.before}${data.step ? Number(shown.toPrecision(4)) : shown}${data.after}`);
        for (const curve of data.curves) {
          const line = element("div", box);
          element("span", line).className = `dot r-${curve.role}`;
          line.append(`${curve.name} ${text(curve.y[k], curve.percent)} `);
        }
      }, x, 8);
      area.setAttribute("aria-valuenow", String(k));
      area.setAttribute("aria-valuetext", said);
    };
    const leave = () => { hair.hidden = true; tip.hide(); };

    // The last point at or before a place; of points that are joined the nearest.
    const find = (at) => {
      let a = 0, b = places.length - 1;
      while (a < b) {
        const middle = (a + b + 1) >> 1;
        if (places[middle] <= at) a = middle; else b = middle - 1;
      }
      if (!data.step && a + 1 < places.length && places[a + 1] - at < at - places[a]) a += 1;
      return a;
    };
    if (!places.length) return;
    const point = (event) => {
      const box = area.getBoundingClientRect();
      const at = Math.max(0, Math.min(100, (100 * (event.clientX - box.left)) / box.width));
      const k = find(at);
      show(k, data.step ? Math.max(at, places[0]) : undefined);
    };
    area.addEventListener("pointermove", point);
    area.addEventListener("pointerdown", point);
    area.addEventListener("pointerleave", leave);
    keys(area, places.length, (key) => {
      const page = Math.max(1, Math.round(places.length / 10));
      const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: page, PageDown: -page };
      const last = places.length - 1;
      if (key === "Home") show(0);
      else if (key === "End") show(last);
      else if (key in steps) show(Math.max(0, Math.min(last, current + steps[key])));
      else return false;
      return true;
    }, leave);
  };

  const grid = (figure, data) => {
    const area = figure.querySelector(".area");
    const tip = tipOf(area);
    const spot = element("div", area);
    spot.className = "spot";
    spot.hidden = true;
    const n = data.rows.length, m = data.columns.length;
    if (!n || !m) return;
    let row = 0, column = -1;
    const show = (i, j) => {
      row = i; column = j;
      const value = data.cells[i][j];
      spot.hidden = false;
      spot.style.cssText = `left:${(100 * j) / m}%;top:${(100 * i) / n}%;width:${100 / m}%;height:${100 / n}%`;
      const said = tip.show((box) => {
        element("b", element("div", box), `${data.rows[i]} `);
        const word = value === 0 ? data.words[0] : value === 1 ? data.words[1] : `${data.words[1]}: ${text(value, true)}`;
        element("div", box, `${word} `);
        element("div", box, data.details[j] || data.columns[j]);
      }, (100 * (j + 1)) / m, (100 * (i + 1)) / n);
      area.setAttribute("aria-valuenow", String(i * m + j));
      area.setAttribute("aria-valuetext", said);
    };
    const leave = () => { spot.hidden = true; tip.hide(); };
    const point = (event) => {
      const box = area.getBoundingClientRect();
      const part = (at, from, size, count) => Math.max(0, Math.min(count - 1, Math.floor((count * (at - from)) / size)));
      show(part(event.clientY, box.top, box.height, n), part(event.clientX, box.left, box.width, m));
    };
    area.addEventListener("pointermove", point);
    area.addEventListener("pointerdown", point);
    area.addEventListener("pointerleave", leave);
    keys(area, n * m, (key) => {
      const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
      if (!(key in moves)) return false;
      const [down, right] = moves[key];
      show(Math.max(0, Math.min(n - 1, row + (column < 0 ? 0 : down))), Math.max(0, Math.min(m - 1, column < 0 ? 0 : column + right)));
      return true;
    }, leave);
  };

  const bars = (figure) => {
    for (const line of figure.querySelectorAll("li[data-tip]")) {
      const track = line.querySelector(".track");
      const tip = tipOf(track);
      const box = track.querySelector(".tip");
      line.addEventListener("pointerover", (event) => {
        const part = track.getBoundingClientRect();
        const at = Math.max(0, Math.min(60, (100 * (event.clientX - part.left)) / part.width));
        tip.show((inside) => element("div", inside, line.dataset.tip), at, 0);
        box.style.top = "1.4rem";
      });
      line.addEventListener("pointerleave", () => tip.hide());
      line.addEventListener("pointerout", () => tip.hide());
    }
  };

  const draw = { lines, grid, barred: bars };
  for (const figure of document.querySelectorAll("figure.chart")) {
    const source = figure.querySelector('script[type="application/json"]');
    const run = draw[figure.dataset.kind];
    if (run) run(figure, source ? JSON.parse(source.textContent) : null);
  }
})();
