// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Replaces the parts of a view that have changed, as the server sends them. Without this script a view is complete and
// does not change.
"use strict";

(() => {
  const main = document.getElementById("main");
  const notice = document.getElementById("connection");
  let address = document.body.dataset.live;
  const patience = 25000; // ms; the server sends something every ten seconds
  let stream = null, heard = 0, lostSince = null, retry = 0, timer = 0, waiting = null;

  // say shows a line above the view, or hides it.
  const say = (text) => {
    if (notice.textContent !== text) notice.textContent = text;
    notice.hidden = text === "";
  };

  const lost = () => {
    lostSince ??= new Date();
    say(`Not connected since ${lostSince.toLocaleTimeString()}. The view shows the state of that time; connecting again …`);
  };

  const found = () => {
    heard = Date.now();
    retry = 0;
    if (lostSince) {
      lostSince = null;
      say("");
    }
  };

  // selecting reports whether the user has selected text in a part: it must not vanish under the pointer.
  const selecting = (part) => {
    const selection = document.getSelection();
    return selection && !selection.isCollapsed && selection.rangeCount > 0 && selection.getRangeAt(0).intersectsNode(part);
  };

  // carry takes over what the user has done to a part: opened details, positions of scrolling, and the focus.
  const carry = (from, to) => {
    for (const details of from.querySelectorAll("details[id]")) {
      const same = to.querySelector("#" + CSS.escape(details.id));
      if (same) same.open = details.open;
    }
    const focused = from.contains(document.activeElement) ? document.activeElement : null;
    if (!focused) return () => {};
    if (focused === from) return () => to.focus({preventScroll: true});
    if (focused.id) return () => document.getElementById(focused.id)?.focus({preventScroll: true});
    // A link is the same one if it leads to the same place; the place among its likes decides between several.
    const href = focused.getAttribute("href");
    const alike = (root) => [...root.querySelectorAll(focused.localName)].filter((e) => e.getAttribute("href") === href);
    const at = alike(from).indexOf(focused);
    return () => {
      const same = alike(to);
      (same[at] ?? same[0])?.focus({preventScroll: true});
    };
  };

  // swap puts a view in place of the present one, part by part.
  const swap = (html) => {
    const next = new DOMParser().parseFromString(html, "text/html");
    const parts = [...next.querySelectorAll("[data-part]")];
    const names = parts.map((part) => part.dataset.part);
    for (const old of main.querySelectorAll("[data-part]")) {
      if (!names.includes(old.dataset.part)) old.remove();
    }
    let before = null;
    for (const part of parts) {
      const old = main.querySelector(`[data-part="${CSS.escape(part.dataset.part)}"]`);
      const fresh = document.importNode(part, true);
      fresh.source = part.outerHTML; // as the server has it: what the user opens changes the element
      if (!old) {
        if (before) before.after(fresh); else main.prepend(fresh);
        before = fresh;
        continue;
      }
      before = old;
      if (old.source === fresh.source) continue;
      if (selecting(old)) {
        waiting = html;
        continue;
      }
      const [left, top] = [old.scrollLeft, old.scrollTop];
      const refocus = carry(old, fresh);
      old.replaceWith(fresh);
      [fresh.scrollLeft, fresh.scrollTop] = [left, top];
      refocus();
      before = fresh;
    }
  };

  const close = () => {
    clearTimeout(timer);
    stream?.close();
    stream = null;
  };

  const connect = () => {
    close();
    stream = new EventSource(address);
    heard = Date.now();
    stream.addEventListener("open", found);
    stream.addEventListener("alive", found);
    stream.addEventListener("view", (event) => {
      found();
      waiting = null;
      swap(event.data);
    });
    stream.addEventListener("problem", (event) => {
      found();
      say(event.data);
    });
    stream.addEventListener("error", () => {
      close();
      // A stream ends after some minutes. That is no loss if the next one begins at once.
      if (retry > 0) lost();
      timer = setTimeout(connect, Math.min(5000, 250 * 2 ** retry++));
    });
  };

  // go shows another state of the same view, without a new page: the focus and what is open stay.
  let going = 0;
  const go = async (to) => {
    const mine = ++going;
    close();
    try {
      const answer = await fetch(to, {headers: {Accept: "text/html"}});
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (mine !== going) return; // another state is asked for by now
      if (!answer.ok || !next.getElementById("main")) throw new Error(answer.statusText);
      history.replaceState(null, "", to);
      document.title = next.title;
      address = next.body.dataset.live ?? "";
      swap(next.getElementById("main").innerHTML);
    } catch (error) {
      if (mine !== going) return;
      say(`The state of that time cannot be shown: ${error.message}`);
    }
    if (address && !document.hidden) connect();
  };

  // The arrow keys, or the mouse, move the scrubber of a timeline. Its last step is now.
  let scrubbing = 0;
  main.addEventListener("input", (event) => {
    if (event.target.id !== "scrubber") return;
    const {value, max, form} = event.target;
    const output = form.querySelector("output");
    output.textContent = value === max ? "now" : new Date(Number(value)).toLocaleTimeString();
    event.target.setAttribute("aria-valuetext", output.textContent);
    close(); // an update would move it back
    going++;
    clearTimeout(scrubbing);
    scrubbing = setTimeout(() => {
      const to = new URL(location.href);
      to.searchParams.delete("at");
      to.searchParams.delete("scrub");
      if (value !== max) to.searchParams.set("at", new Date(Number(value)).toISOString());
      go(to);
    }, 150);
  });

  document.addEventListener("selectionchange", () => {
    if (waiting !== null && document.getSelection()?.isCollapsed) {
      const html = waiting;
      waiting = null;
      swap(html);
    }
  });

  // "/" and Ctrl-K, or Command-K, go to the search box. "/" is a letter where text is entered.
  document.addEventListener("keydown", (event) => {
    const entering = event.target.closest?.("input, textarea, select, [contenteditable]");
    const combined = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
    const slash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !entering;
    const box = document.getElementById("q");
    if (box && (combined || slash)) {
      event.preventDefault();
      box.focus();
      box.select();
    }
  });

  const follow = () => {
    for (const part of main.querySelectorAll("[data-part]")) part.source = part.outerHTML;
    setInterval(() => {
      if (stream && Date.now() - heard > patience) {
        lost();
        connect();
      }
    }, 5000);
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) close(); else connect();
    });
    window.addEventListener("pagehide", close);
    window.addEventListener("pageshow", (event) => { if (event.persisted) connect(); });
    if (!document.hidden) connect();
  };

  // The view is seen before it is followed: otherwise the server and this script would do first what takes as long as the
  // first paint. A page that is not seen has no frame.
  if (address) {
    if (document.hidden) follow(); else requestAnimationFrame(() => setTimeout(follow));
  }
})();
