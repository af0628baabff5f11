"use strict";
// The numbers of the part that is pointed at, focused or pinned.
(() => {
  const readout = document.querySelector(".readout");
  const rest = readout.textContent;
  const parts = [...document.querySelectorAll(".drawing .part")];
  let pinned = null;
  const show = (part) => {
    const shown = part ?? pinned;
    readout.textContent = shown ? shown.getAttribute("aria-label") : rest;
    readout.classList.toggle("on", shown !== null);
  };
  const pin = (part) => {
    pinned = pinned === part ? null : part;
    parts.forEach((one) => one.setAttribute("aria-pressed", String(one === pinned)));
    show(part);
  };
  parts.forEach((part) => {
    part.addEventListener("pointerenter", () => show(part));
    part.addEventListener("pointerleave", () => show(null));
    part.addEventListener("focus", () => show(part));
    part.addEventListener("blur", () => show(null));
    part.addEventListener("click", () => pin(part));
    part.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        pin(part);
      } else if (event.key === "Escape" && pinned) pin(pinned);
    });
  });
})();
