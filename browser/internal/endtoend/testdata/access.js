// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Returns what keeps a reader from reading this page, as sentences. The rules are those of WCAG 2.2, level AA.
(() => {
  const found = [];
  const name = (e) => e.outerHTML.slice(0, 100);

  // Luminance and contrast: WCAG 2.2, definitions of "relative luminance" and "contrast ratio".
  const channels = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => {
    const part = (c) => (c /= 255, c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const contrast = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const isOpaque = (c) => c.length === 3 || c[3] === 1;
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      // Texts of a picture stand on the rectangle beside them.
      const shape = e.localName === "g" ? e.querySelector("rect") : null;
      const color = channels(shape ? getComputedStyle(shape).fill : getComputedStyle(e).backgroundColor);
      if (color.length && isOpaque(color)) return color;
    }
    return [255, 255, 255];
  };
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim() !== "");
    if (!own || !e.checkVisibility() || e.closest(".unseen, title")) continue;
    const style = getComputedStyle(e);
    const color = channels(e.closest("svg") ? style.fill : style.color);
    const size = parseFloat(style.fontSize), large = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
    const ratio = contrast(color, ground(e));
    if (ratio < (large ? 3 : 4.5)) found.push(`the contrast of ${name(e)} is ${ratio.toFixed(2)}`);
  }

  const label = (e) => (e.getAttribute("aria-label") ?? [...(e.labels ?? [])].map((l) => l.textContent).join(" ") + e.textContent).trim();
  for (const e of document.querySelectorAll("a[href], button, input:not([type=hidden]), summary")) {
    if (label(e) === "") found.push(`${name(e)} has no name`);
  }
  for (const e of document.querySelectorAll("[role=img]")) {
    if (!e.getAttribute("aria-label")) found.push(`the picture ${name(e)} has no name`);
  }

  const levels = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((h) => Number(h.localName[1]));
  if (levels.filter((l) => l === 1).length !== 1) found.push("the page has no single first heading");
  levels.forEach((l, i) => { if (i > 0 && l > levels[i - 1] + 1) found.push(`heading ${i + 1} leaves out a level`); });

  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of new Set(ids)) if (ids.filter((other) => other === id).length > 1) found.push(`two elements have the id ${id}`);
  for (const e of document.querySelectorAll("[aria-labelledby]")) {
    if (!document.getElementById(e.getAttribute("aria-labelledby"))) found.push(`${name(e)} is named by an element that is not there`);
  }
  if (!document.documentElement.lang) found.push("the page does not say its language");
  if (!document.title) found.push("the page has no title");
  if (document.querySelectorAll("main").length !== 1) found.push("the page has no single main part");
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page is wider than the window");
  return found;
})()
