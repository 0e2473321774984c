"use strict";
// Sorting, bringing out one method in a figure or an album, and copying a command. Nothing leaves
// the page.

const said = document.getElementById("said");

// --- tables ---------------------------------------------------------------------------------

function sortValue(cell, kind) {
  const given = cell.dataset.value ?? cell.textContent.trim();
  if (kind !== "number") return given.toLowerCase();
  return given === "" ? NaN : Number(given);
}

// Cells without a value come last, whichever way the others run.
function compare(a, b, sign) {
  const noneA = a === "" || Number.isNaN(a), noneB = b === "" || Number.isNaN(b);
  if (noneA || noneB) return noneA - noneB;
  if (typeof a === "number") return sign * (a - b);
  return sign * a.localeCompare(b, "en", { numeric: true });
}

function sortBy(heading) {
  const table = heading.closest("table"), body = table.tBodies[0];
  const headings = [...heading.parentElement.cells], column = headings.indexOf(heading);
  const up = heading.getAttribute("aria-sort") !== "ascending", kind = heading.dataset.kind;
  const rows = [...body.rows].map((row) => [sortValue(row.cells[column], kind), row]);
  rows.sort((one, other) => compare(one[0], other[0], up ? 1 : -1));
  body.append(...rows.map((pair) => pair[1]));
  for (const each of headings) each.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", up ? "ascending" : "descending");
  const words = heading.textContent.trim();
  said.textContent = `Sorted by ${words}, ${up ? "ascending" : "descending"}.`;
}

for (const button of document.querySelectorAll("table.sortable thead button")) {
  button.addEventListener("click", () => sortBy(button.closest("th")));
}

// --- figures --------------------------------------------------------------------------------

function light(figure, names) {
  figure.classList.toggle("lit", names.size > 0);
  for (const part of figure.querySelectorAll("svg [data-series]")) {
    part.classList.toggle("lit", names.has(part.dataset.series));
  }
}

for (const figure of document.querySelectorAll("figure")) {
  const keys = [...figure.querySelectorAll(".key")];
  const pressed = () => keys.filter((key) => key.getAttribute("aria-pressed") === "true");
  const show = (key) => light(figure, new Set([...pressed(), ...(key ? [key] : [])].map((k) => k.dataset.series)));
  for (const key of keys) {
    key.addEventListener("click", () => {
      key.setAttribute("aria-pressed", String(key.getAttribute("aria-pressed") !== "true"));
      show();
    });
    key.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && show(key));
    key.addEventListener("pointerleave", () => show());
  }
}

// --- albums ---------------------------------------------------------------------------------

for (const album of document.querySelectorAll(".album")) {
  const picks = [...album.querySelectorAll(".pick")];
  for (const pick of picks) {
    pick.addEventListener("click", () => {
      for (const each of picks) each.setAttribute("aria-pressed", String(each === pick));
      for (const tile of album.querySelectorAll(".tile[data-method]")) {
        tile.hidden = tile.dataset.method !== pick.dataset.method;
      }
      said.textContent = `Showing ${pick.textContent.trim()}.`;
    });
  }
}

// --- commands -------------------------------------------------------------------------------

async function copy(button) {
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    // No clipboard for this page: leave the text selected, so that the reader can copy it.
    getSelection().selectAllChildren(code);
    said.textContent = button.textContent = "Selected";
    return;
  }
  said.textContent = button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

for (const button of document.querySelectorAll("button.copy")) {
  button.addEventListener("click", () => copy(button));
}
