"use strict";

// A click on a column's name sorts its table by that column: numbers from large to small first, words from a on.
function sortBy(header) {
  const table = header.closest("table");
  const column = [...header.parentNode.children].indexOf(header);
  const isWords = header.classList.contains("words");
  const first = isWords ? "ascending" : "descending";
  const second = isWords ? "descending" : "ascending";
  const order = header.getAttribute("aria-sort") === first ? second : first;
  for (const other of header.parentNode.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", order);
  const key = (row) => row.children[column].dataset.value ?? row.children[column].textContent;
  const compare = isWords ? (a, b) => key(a).localeCompare(key(b)) : (a, b) => Number(key(a)) - Number(key(b));
  const sign = order === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows].sort((a, b) => sign * compare(a, b));
  table.tBodies[0].append(...rows);
}

for (const header of document.querySelectorAll("th")) {
  header.firstElementChild.addEventListener("click", () => sortBy(header));
}

// Which tile the pointer is on, and what is known of it.
const tiles = JSON.parse(document.getElementById("tiles").textContent);

function tileAt(map, event) {
  const box = map.getBoundingClientRect();
  const columns = map.viewBox.baseVal.width;
  const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
  const row = Math.floor(((event.clientY - box.top) / box.height) * map.viewBox.baseVal.height);
  const inIpu = row * columns + column;
  return inIpu < tiles.per_ipu ? Number(map.dataset.ipu) * tiles.per_ipu + inIpu : -1;
}

for (const map of document.querySelectorAll(".map")) {
  const under = document.getElementById("tile");
  map.addEventListener("pointermove", (event) => {
    const tile = tileAt(map, event);
    under.textContent = tile < 0 ? "" : `tile ${tile}: computes ${tiles.busy[tile]}, holds ${tiles.memory[tile]}`;
  });
}

document.documentElement.dataset.ready = "yes";
