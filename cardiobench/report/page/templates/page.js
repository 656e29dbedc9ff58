(() => {
  "use strict";
  const all = (selector, root) => Array.from((root || document).querySelectorAll(selector));
  const value = (row, column) => {
    const cell = row.cells[column];
    if (!cell || cell.classList.contains("none")) return null;
    const text = cell.firstChild ? cell.firstChild.textContent.trim() : "";
    if (!cell.matches("[data-v], .r, .metrics td ~ td")) return text.toLowerCase();
    const number = Number.parseFloat("v" in cell.dataset ? cell.dataset.v : text.replace("< ", ""));
    return Number.isNaN(number) ? null : number;
  };
  const compare = (a, b, sign) => {
    if (a === null || b === null) return (a === null) - (b === null); // what has no score stands last, either way
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    return sign * String(a).localeCompare(String(b));
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.sort");
    if (!button) return;
    const head = button.closest("th"), table = head.closest("table"), column = head.cellIndex;
    const first = head.classList.contains("task") || head.classList.contains("r") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    all("thead th[aria-sort]", table).forEach((one) => one.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", order);
    const body = table.tBodies[0], sign = order === "ascending" ? 1 : -1;
    const rows = Array.from(body.rows).map((row) => [value(row, column), row]);
    rows.sort((a, b) => compare(a[0], b[0], sign));
    body.append(...rows.map((pair) => pair[1]));
  });

  // A table whose columns do not fit becomes cards: one a row, each cell under the head of its column.
  const label = (table) => {
    const heads = Array.from(table.tHead.rows[0].cells, (head) => head.textContent.trim());
    Array.from(table.tBodies[0].rows).forEach((row) => Array.from(row.cells).forEach((cell, column) => {
      if (cell.colSpan === 1) cell.dataset.label = heads[column];
    }));
  };
  const widths = new WeakMap();
  const layOut = (entries) => {
    const tables = entries.map((entry) => entry.target.firstElementChild).filter((table) => {
      const width = table.closest(".scroll").parentElement.clientWidth;
      const moved = width && widths.get(table) !== width;
      widths.set(table, width);
      return moved;
    });
    tables.forEach((table) => table.classList.remove("cards"));
    const narrow = tables.filter((table) => innerWidth < 600 || table.offsetWidth > table.parentElement.clientWidth);
    narrow.forEach((table) => { label(table); table.classList.add("cards"); });
  };
  const sizes = new ResizeObserver(layOut);
  all(".scroll").forEach((frame) => sizes.observe(frame));

  const field = (id) => document.getElementById(id);
  const filter = () => {
    const model = field("f-model").value.trim().toLowerCase(), task = field("f-task").value.trim().toLowerCase();
    const protocol = field("f-protocol").value, above = field("f-above").checked;
    let shown = 0, total = 0;
    all(".heat").forEach((table) => {
      Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
        const hidden = "task" in head.dataset && !head.dataset.task.includes(task);
        Array.from(table.rows).forEach((row) => { row.cells[column].hidden = hidden; });
      });
      Array.from(table.tBodies[0].rows).forEach((row) => {
        const wins = !above || all('.cell[data-wins]:not([hidden])', row).length > 0;
        const same = row.dataset.model.includes(model) && (!protocol || row.dataset.protocol === protocol);
        row.hidden = !(same && wins);
        shown += !row.hidden; total += 1;
      });
    });
    field("f-count").textContent = `${shown} of ${total} rows`;
  };
  const form = document.querySelector(".filters");
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();

  // One cell of each table can be reached with Tab; arrow keys go on from there.
  const cells = all(".heat td.cell, .heat td.none");
  cells.forEach((cell) => { cell.tabIndex = -1; });
  all(".heat").forEach((table) => { const one = table.querySelector("td.cell, td.none"); if (one) one.tabIndex = 0; });
  const head = (cell) => cell.closest("table").tHead.rows[0].cells[cell.cellIndex];
  const link = Object.assign(document.createElement("a"), { className: "permalink", textContent: "#", ariaLabel: "link to this cell" });
  const tell = (cell) => {
    const row = cell.parentElement, names = [row.cells[0], row.cells[1]].map((one) => one.textContent.trim());
    field("detail").textContent = `${names.join(", ")}, on ${head(cell).textContent.trim()}. ${cell.title}`;
    if (cell.id && link.parentElement !== cell) { link.href = `#${cell.id}`; cell.append(link); }
  };
  const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  const next = (cell, [down, right]) => {
    if (right) {
      let one = cell;
      do { one = right > 0 ? one.nextElementSibling : one.previousElementSibling; } while (one && one.hidden);
      return one;
    }
    let row = cell.parentElement;
    do { row = down > 0 ? row.nextElementSibling : row.previousElementSibling; } while (row && row.hidden);
    return row ? row.cells[cell.cellIndex] : null;
  };
  const open = (id) => { const part = document.getElementById(id); if (part) { part.open = true; location.hash = id; } };
  document.addEventListener("keydown", (event) => {
    const cell = event.target.closest && event.target.closest(".heat td.cell, .heat td.none");
    if (!cell || (event.key === "Enter" && event.target.closest("a"))) return;
    if (event.key === "Enter" && cell.id) { open(head(cell).dataset.open); return; }
    if (!(event.key in steps)) return;
    const to = next(cell, steps[event.key]);
    if (to && (to.classList.contains("cell") || to.classList.contains("none"))) {
      cell.tabIndex = -1; to.tabIndex = 0; to.focus(); event.preventDefault();
    }
  });
  document.addEventListener("focusin", (event) => { const c = event.target.closest(".heat td[title]"); if (c) tell(c); });
  document.addEventListener("mouseover", (event) => { const c = event.target.closest(".heat td[title]"); if (c) tell(c); });
  const hush = (event) => { if (!event.target.closest(".heat")) field("detail").textContent = ""; };
  document.addEventListener("focusin", hush);
  document.addEventListener("mouseover", (event) => { if (!(document.activeElement && document.activeElement.closest(".heat td"))) hush(event); });
  document.addEventListener("click", (event) => { const c = event.target.closest(".heat td.cell"); if (c && !event.target.closest("a")) open(head(c).dataset.open); });
  const follow = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView(); }
    if (target && target.classList.contains("cell")) { target.focus({ preventScroll: true }); target.scrollIntoView({ block: "center" }); }
  };
  addEventListener("hashchange", follow);
  follow();
  let closed = [];
  addEventListener("beforeprint", () => { closed = all("details:not([open])"); closed.forEach((one) => { one.open = true; }); });
  addEventListener("afterprint", () => { closed.forEach((one) => { one.open = false; }); });
})();
