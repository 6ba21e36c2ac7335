"use strict";
// Follows the logins and keeps the page up to date. A consent page is opened by the
// browser itself, because a person clicked on a link: one link, one tab.
(() => {
  const byId = (id) => document.getElementById(id);
  const groups = byId("groups");
  const next = byId("next");
  const seen = new Set(); // rows whose page was opened
  let latest = null;

  const setText = (el, text) => { if (el.textContent !== text) el.textContent = text; };
  const setHidden = (el, hidden) => { if (el.hidden !== hidden) el.hidden = hidden; };

  // part finds or makes an element of a row, and takes it away when it is not needed.
  const part = (li, tag, name, wanted) => {
    let el = li.querySelector(":scope > ." + name);
    if (!wanted) {
      if (el) el.remove();
      return null;
    }
    if (!el) {
      el = document.createElement(tag);
      el.className = name;
      li.append(el);
    }
    return el;
  };

  const updateRow = (li, row) => {
    if (li.dataset.phase !== row.phase) li.dataset.phase = row.phase;
    setText(part(li, "span", "server", true), row.server);
    setText(part(li, "span", "word", true), row.word);
    const link = part(li, "a", "open", Boolean(row.link));
    if (link) {
      if (link.getAttribute("href") !== row.link) link.href = row.link;
      link.target = "_blank";
      link.rel = "noopener noreferrer";
      link.classList.toggle("seen", seen.has(row.id));
      setText(link, (seen.has(row.id) ? "Open again: " : "Connect ") + row.server);
    }
    const code = part(li, "span", "code", Boolean(row.code));
    if (code && code.dataset.code !== row.code) {
      code.dataset.code = row.code;
      const strong = document.createElement("strong");
      strong.textContent = row.code;
      code.replaceChildren("code ", strong);
    }
    setText(part(li, "span", "url", true), row.url);
    const detail = part(li, "span", "detail", Boolean(row.detail));
    if (detail) setText(detail, row.detail);
  };

  const rowsOf = (page) => page.groups.flatMap((g) => g.rows);

  // The next login that nobody has opened yet, else the next that waits.
  const updateNext = (page) => {
    const waiting = rowsOf(page).filter((r) => r.link);
    const row = waiting.find((r) => !seen.has(r.id)) || waiting[0];
    setHidden(next, !row);
    if (!row) return;
    next.dataset.row = row.id;
    if (next.getAttribute("href") !== row.link) next.href = row.link;
    setText(next, "Open the next one: " + row.server);
  };

  // place puts child at an index of its parent, and touches nothing that is in place.
  const place = (parent, child, index) => {
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] || null);
  };

  const arrange = (page) => {
    page.groups.forEach((group, i) => {
      let section = byId(group.id);
      if (!section) {
        section = document.createElement("section");
        section.id = group.id;
        section.append(document.createElement("h2"), document.createElement("ul"));
      }
      setText(section.querySelector("h2"), group.title);
      place(groups, section, i);
      const list = section.querySelector("ul");
      group.rows.forEach((row, j) => {
        let li = byId(row.id);
        if (!li) {
          li = document.createElement("li");
          li.id = row.id;
        }
        place(list, li, j);
        updateRow(li, row);
      });
    });
    const keep = new Set(page.groups.map((g) => g.id));
    for (const section of [...groups.children]) if (!keep.has(section.id)) section.remove();
  };

  const render = (page) => {
    latest = page;
    setText(byId("summary"), page.summary);
    const progress = byId("progress");
    if (progress) Object.assign(progress, { max: Math.max(page.all, 1), value: page.good });
    document.title = page.summary + " – usher";
    updateNext(page);
    if (groups.matches(":hover")) {
      // Nothing moves under the pointer: rows change in place, the rest comes later.
      for (const row of rowsOf(page)) {
        const li = byId(row.id);
        if (li) updateRow(li, row);
      }
      return;
    }
    arrange(page);
  };

  groups.addEventListener("mouseleave", () => { if (latest) arrange(latest); });

  // One gesture, one tab: not the second click of a double click, nor a held key.
  document.addEventListener("click", (e) => {
    const link = e.target.closest("a.open");
    if (!link) return;
    if (e.detail > 1) {
      e.preventDefault();
      return;
    }
    const id = link === next ? next.dataset.row : link.parentElement.id;
    if (!id || !latest) return;
    // After the browser has followed the link as it was.
    setTimeout(() => {
      seen.add(id);
      render(latest);
    }, 0);
  });
  document.addEventListener("keydown", (e) => {
    if (e.repeat && e.key === "Enter" && e.target.closest("a.open")) e.preventDefault();
  });

  const source = new EventSource("/connect/events");
  source.addEventListener("open", () => setHidden(byId("lost"), true));
  source.addEventListener("page", (e) => render(JSON.parse(e.data)));
  source.addEventListener("done", () => {
    source.close();
    setHidden(byId("over"), false);
  });
  source.addEventListener("error", () => setHidden(byId("lost"), false));
})();
