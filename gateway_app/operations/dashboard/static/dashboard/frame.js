// On every page. Loaded before the first paint, so that no page appears in the wrong theme.
"use strict";
{
  const KEY = "theme"; // Django's admin uses the same key and the same attribute
  const THEMES = ["auto", "light", "dark"];
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");

  // A browser that blocks cookies throws at every access: the choice then lasts for one page.
  function storage(use) {
    try {
      return use(localStorage);
    } catch (error) {
      console.info("The theme can't be remembered:", error.message);
      return null;
    }
  }

  function setTheme(theme) {
    const chosen = THEMES.includes(theme) ? theme : "auto";
    const system = prefersDark.matches ? "dark" : "light";
    root.dataset.theme = chosen;
    root.dataset.scheme = chosen === "auto" ? system : chosen;
    const choice = document.getElementById("theme-choice");
    if (choice) choice.value = chosen;
    document.dispatchEvent(new Event("themechange"));
  }

  function offerThemes() {
    const choice = document.getElementById("theme-choice");
    if (!choice) return;
    choice.value = root.dataset.theme;
    choice.parentElement.hidden = false;
    choice.addEventListener("change", () => {
      storage((stored) => stored.setItem(KEY, choice.value));
      setTheme(choice.value);
    });
  }

  const two = (number) => String(number).padStart(2, "0");
  const dayOf = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const clockOf = (at) => `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;

  // The server renders UTC; the reader gets the time of the own zone, and UTC in the tooltip.
  function showReadersTimes() {
    for (const element of document.querySelectorAll("time[datetime]")) {
      const at = new Date(element.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      const utc = `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
      const local = `${dayOf(at)} ${clockOf(at)}`;
      const isRelative = "relative" in element.dataset;
      element.title = isRelative ? `${local} (${utc})` : utc;
      if (!isRelative) element.textContent = local;
    }
  }

  setTheme(storage((stored) => stored.getItem(KEY)));
  prefersDark.addEventListener("change", () => setTheme(root.dataset.theme));
  addEventListener("storage", (event) => {
    if (event.key === KEY) setTheme(event.newValue); // another tab has changed it
  });
  document.addEventListener("htmx:afterSwap", showReadersTimes);
  document.addEventListener("timesadded", showReadersTimes);
  document.addEventListener("DOMContentLoaded", () => {
    offerThemes();
    showReadersTimes();
  });
}
