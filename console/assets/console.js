"use strict";
// Keeps the page up to date. usher renders every region of the page and sends it
// when it reads differently; this puts the difference into the page and touches
// nothing else, so that focus, selection, scrolling and what is typed stay.
(() => {
  const byId = (id) => document.getElementById(id);
  const latest = new Map(); // region → its newest content
  let here = document.body.dataset.here;
  let source = null;

  // A page that a form led to has the address of the form: a reload must not send it again.
  if (here && location.pathname + location.search !== here) history.replaceState(null, "", here + location.hash);

  const still = (el) => el.hasAttribute("data-still") && el.matches(":hover");

  const attributes = (have, want) => {
    for (const a of want.attributes) if (have.getAttribute(a.name) !== a.value) have.setAttribute(a.name, a.value);
    for (const a of [...have.attributes]) {
      // Whether something is unfolded is the person's business, which links were opened is ours.
      if (!want.hasAttribute(a.name) && !(a.name === "open" && have.tagName === "DETAILS")) have.removeAttribute(a.name);
    }
  };

  const sync = (have, want) => {
    if (have.hasAttribute("data-keep")) return;
    const seen = have.classList.contains("seen");
    attributes(have, want);
    if (seen) have.classList.add("seen");
    children(have, want);
  };

  const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");

  // find looks for the node that stands for a wanted one: by its id, or the next of its kind.
  const find = (have, at, w) => {
    if (w.id) return [...have.children].find((c) => c.id === w.id && c.nodeName === w.nodeName) || null;
    return at && alike(at, w) ? at : null;
  };

  const children = (have, want) => {
    if (still(have)) {
      // Nothing moves under the pointer: rows change in place, the rest comes later.
      for (const w of want.children) {
        const h = w.id && [...have.children].find((c) => c.id === w.id);
        if (h) sync(h, w);
      }
      return;
    }
    let at = have.firstChild;
    for (const w of [...want.childNodes]) {
      const h = find(have, at, w);
      if (!h) {
        have.insertBefore(document.importNode(w, true), at);
        continue;
      }
      if (h === at) at = at.nextSibling;
      else have.insertBefore(h, at);
      if (h.nodeType === Node.ELEMENT_NODE) sync(h, w);
      else if (h.data !== w.data) h.data = w.data;
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  };

  const put = (id) => {
    const have = byId(id);
    if (!have || !latest.has(id)) return;
    // Within an element, since a parser drops the space that a body begins with: the first
    // node would be another one, all others would move, and what moves loses the focus.
    const want = new DOMParser().parseFromString("<div>" + latest.get(id) + "</div>", "text/html").body.firstChild;
    children(have, want);
  };

  document.addEventListener("mouseout", (e) => {
    const list = e.target.closest && e.target.closest("[data-still]");
    if (list && !list.contains(e.relatedTarget)) for (const id of latest.keys()) put(id);
  });

  const follow = () => {
    if (source) source.close();
    source = new EventSource("/console/events?at=" + encodeURIComponent(here));
    source.addEventListener("open", () => { byId("lost").hidden = true; });
    source.addEventListener("error", () => { byId("lost").hidden = false; });
    source.addEventListener("over", () => {
      source.close();
      byId("over").hidden = false;
    });
    source.addEventListener("region", (e) => {
      const region = JSON.parse(e.data);
      latest.set(region.id, region.html);
      put(region.id);
    });
  };
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (e) => { if (e.persisted) follow(); });
  follow();

  // Searching while typing: the page of the new words is followed instead.
  const q = byId("q");
  if (q) {
    let timer = 0;
    q.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        here = "/console/tools" + (q.value ? "?q=" + encodeURIComponent(q.value) : "");
        history.replaceState(null, "", here);
        latest.clear();
        follow();
      }, 150);
    });
  }

  // One gesture, one tab: not the second click of a double click, nor a held key.
  document.addEventListener("click", (e) => {
    const link = e.target.closest("a.open");
    if (!link) return;
    if (e.detail > 1) e.preventDefault();
    else if (link.id !== "next") link.classList.add("seen");
  });
  // A form is sent once, however often its button is pressed.
  document.addEventListener("submit", (e) => {
    if (e.target.dataset.sent) e.preventDefault();
    e.target.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach((f) => delete f.dataset.sent));

  // "/" leads to the search, as in many places.
  document.addEventListener("keydown", (e) => {
    const typing = e.target.closest("input, textarea, select");
    if (e.key !== "/" || typing || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    if (q) q.focus();
    else location.assign("/console/tools#q");
  });
  if (location.hash === "#q" && q) q.focus();
})();
