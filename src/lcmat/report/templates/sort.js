// Makes the headings of tables buttons that sort; without a script the tables stand as they are.
for (const table of document.querySelectorAll("figure.table table")) {
  const body = table.tBodies[0];
  if (!body || body.rows.length < 2) continue;
  const number = (text) => parseFloat(text.replace(/\u2212/g, "-").replace(/[,\u00b1+\s]/g, ""));
  table.querySelectorAll("thead th").forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending";
      const rows = [...body.rows].map((row) => [row.cells[place].textContent.trim(), row]);
      rows.sort(([a], [b]) => {
        const [x, y] = [number(a), number(b)];
        if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
        return (falling ? -1 : 1) * (isNaN(x) ? a.localeCompare(b) : x - y);
      });
      for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      body.append(...rows.map(([, row]) => row));
    });
  });
}
