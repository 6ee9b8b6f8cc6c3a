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

// A link leads to the first message of a finding; all of its messages are marked
for (const link of document.querySelectorAll("a[data-finding]")) link.addEventListener("click", () => {
  for (const row of document.querySelectorAll("tr[data-findings]"))
    row.classList.toggle("of-finding", row.dataset.findings.split(" ").includes(link.dataset.finding));
});

const showFinding = number => {
  const link = document.querySelector(`a[data-finding="${number}"]`);
  if (link) link.click(); else location.hash = `finding-${number}`;
};

const charts = JSON.parse(document.getElementById("charts").textContent);
for (const [name, spec] of Object.entries(charts)) {
  const element = document.getElementById(`chart-${name}`);
  const tooltip = {disableDefaultStyle: true};
  const options = {actions: false, defaultStyle: false, logLevel: 1, renderer: "svg", tooltip};
  let view, drawn;
  const draw = async () => {
    const width = element.clientWidth;
    if (width === drawn) return;
    drawn = width;
    view?.finalize();
    // Charts below each other cannot take the width of their element themselves
    for (const part of spec.vconcat ?? []) part.width = width - 56;
    ({view} = await drawChart(element, structuredClone(spec), options));
    view.addEventListener("click", (_, item) => item?.datum?.finding && showFinding(item.datum.finding));
  };
  draw();
  addEventListener("resize", draw);
}
