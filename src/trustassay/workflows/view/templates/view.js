// What the pages can do with a script: a theme, keys, and parts that follow what changes on disk.
(() => {
  "use strict";
  const base = document.body.dataset.base;

  const theme = document.getElementById("theme");
  const show = (name) => {
    document.documentElement.dataset.theme = name;
    theme.textContent = name === "dark" ? "Light theme" : "Dark theme";
  };
  const dark = () => document.documentElement.dataset.theme === "dark";
  const preferred = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  show(localStorage.getItem("theme") ?? preferred);
  theme.hidden = false;
  theme.addEventListener("click", () => {
    show(dark() ? "light" : "dark");
    localStorage.setItem("theme", document.documentElement.dataset.theme);
  });
})();
