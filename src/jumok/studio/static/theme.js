"use strict";
// Before anything is painted: the theme that a link names, that was chosen here before, or that the system has.
(() => {
  const named = /[?&]theme=(light|dark)/.exec(location.hash);
  let kept = null;
  try {
    kept = localStorage.getItem("jumok-theme");
  } catch { /* a browser that keeps nothing */ }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const chosen = named ? named[1] : (kept === "light" || kept === "dark" ? kept : dark ? "dark" : "light");
  document.documentElement.dataset.theme = chosen;
  // Modules that cannot be loaded here: the page says which browsers can. It is gone as soon as there is a view.
  addEventListener("error", ({ target }) => {
    const told = document.getElementById("old");
    if (!told || (target !== window && target.localName !== "script")) return;
    told.hidden = false;
    told.previousElementSibling.hidden = true;
  }, true);
})();
