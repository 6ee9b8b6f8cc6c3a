for (const button of document.querySelectorAll("th button")) button.addEventListener("click", () => {
  const head = button.closest("th"), table = head.closest("table"), at = head.cellIndex, body = table.tBodies[0];
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const numbers = body.rows[0]?.cells[at].className === "number";
  const ranks = {high: 0, medium: 1, low: 2}, severity = head.textContent === "severity";
  const value = row => {
    const text = row.cells[at].textContent;
    return numbers ? Number(text.replaceAll(",", "")) : severity ? ranks[text] : text;
  };
  const order = (a, b) => { const x = value(a), y = value(b); return x < y ? -1 : x > y ? 1 : 0; };
  body.append(...[...body.rows].sort((a, b) => down ? order(b, a) : order(a, b)));
});
