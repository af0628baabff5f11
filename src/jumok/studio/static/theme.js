"use strict";
// Before anything is painted: the theme that a link names, that was chosen here before, or that the system has.
(() => {
  const named = /[?&]theme=(light|dark)/.exec(location.hash)?.[1];
  let kept = null;
  try {
    kept = localStorage.getItem("jumok-theme");
  } catch { /* a browser that keeps nothing */ }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const chosen = named ?? (kept === "light" || kept === "dark" ? kept : dark ? "dark" : "light");
  document.documentElement.dataset.theme = chosen;
})();
