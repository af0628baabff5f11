"use strict";
// Values under the pointer (or the arrow keys) for every <figure class="curve">.
(() => {
  const place = document.getElementById("curve-data");
  if (!place) return;
  const data = JSON.parse(place.textContent);
  const exact = (value) => (Math.abs(value) >= 1000
    ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4))));
  document.querySelectorAll("figure.curve").forEach((figure) => {
    const { points } = data[Number(figure.dataset.index)];
    const [left, right, end] = ["left", "right", "end"].map((name) => Number(figure.dataset[name]));
    const svg = figure.querySelector("svg");
    const cross = figure.querySelector(".cross");
    const at = figure.querySelector(".at");
    const values = [...figure.querySelectorAll("figcaption b")];
    const before = [at.textContent, ...values.map((value) => value.textContent)];
    const steps = [...new Set(points.flat().map(([step]) => step))].sort((a, b) => a - b);
    let current = steps.length - 1;
    const show = (index) => {
      current = Math.min(Math.max(index, 0), steps.length - 1);
      const step = steps[current];
      const x = left + ((right - left) * step) / end;
      cross.setAttribute("x1", x);
      cross.setAttribute("x2", x);
      figure.classList.add("active");
      at.textContent = `step ${step.toLocaleString("en")}`;
      values.forEach((element, number) => {
        const series = points[number];
        const near = series.reduce((best, point) => (
          Math.abs(point[0] - step) < Math.abs(best[0] - step) ? point : best), series[0]);
        element.textContent = exact(near[1]);
      });
    };
    const rest = () => {
      figure.classList.remove("active");
      [at, ...values].forEach((element, number) => { element.textContent = before[number]; });
    };
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      const step = ((x - left) / (right - left)) * end;
      let nearest = 0;
      steps.forEach((value, index) => {
        if (Math.abs(value - step) < Math.abs(steps[nearest] - step)) nearest = index;
      });
      show(nearest);
    });
    svg.addEventListener("pointerleave", rest);
    svg.addEventListener("blur", rest);
    svg.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!move) return;
      event.preventDefault();
      show(figure.classList.contains("active") ? current + move : current);
    });
  });
})();
