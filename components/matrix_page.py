"""A published matrix as a page of its own: a picture and its exact numbers in one HTML file.

It opens without Glassbox and without a network. The numbers travel as the float32 that they are,
the labels as JSON; nothing of them is read as markup.
"""

import base64
import html
import json
from collections.abc import Sequence

import numpy as np

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>__TITLE__</title>
<meta name="viewport" content="width=device-width">
<style>
body { margin: 24px; font: 15px/1.5 system-ui, sans-serif; color: #1d232b; background: #fff; }
canvas { width: min(90vw, 80vh); image-rendering: pixelated; border: 1px solid #e4e0d8; }
#said { font-family: monospace; min-height: 1.5em; }
</style></head><body><canvas id="map"></canvas><p id="said"></p>
<script type="application/json" id="facts">__FACTS__</script>
<script>
const facts = JSON.parse(document.getElementById('facts').textContent);
const bytes = Uint8Array.from(atob(facts.cells), letter => letter.charCodeAt(0));
const cells = new Float32Array(bytes.buffer), [rows, columns] = facts.shape;
const map = document.getElementById('map'), said = document.getElementById('said');
map.width = columns;
map.height = rows;
const image = new ImageData(columns, rows);
cells.forEach((cell, i) => {
  const signed = facts.low < 0, {low, high} = facts;
  const part = signed ? Math.abs(cell) / high : (cell - low) / (high - low);
  const share = Math.min(1, Math.max(0, part || 0)) ** 0.6;
  const full = signed && cell < 0 ? [96, 192, 249] : [247, 216, 171];  // taken from white
  image.data.set([...full.map(most => 255 - most * share), 255], 4 * i);
});
map.getContext('2d').putImageData(image, 0, 0);
map.addEventListener('pointermove', event => {
  const area = map.getBoundingClientRect();
  const row = Math.floor(((event.clientY - area.top) / area.height) * rows);
  const column = Math.floor(((event.clientX - area.left) / area.width) * columns);
  if (row < 0 || column < 0 || row >= rows || column >= columns) return;
  said.textContent = `${row} ${JSON.stringify(facts.rows[row])} | ` +
    `${column} ${JSON.stringify(facts.columns[column])}: ${cells[row * columns + column]}`;
});
</script></body></html>
"""


def make_matrix_page(
    cells: np.ndarray,
    *,
    low: float,
    high: float,
    row_labels: Sequence[str],
    column_labels: Sequence[str],
    title: str = "Glassbox",
) -> str:
    """Write the page.

    Args:
        cells: float32 of shape (rows, columns).
        low: The number drawn in the lightest colour; -high draws 0 so, and less than 0 in another.
        high: The number drawn in the fullest colour.
        row_labels: One text a row; numbers where there is none.
        column_labels: One text a column; numbers where there is none.
        title: Of the page.
    """
    rows, columns = cells.shape
    facts = {
        "cells": base64.b64encode(np.ascontiguousarray(cells, dtype="<f4").tobytes()).decode(),
        "shape": [rows, columns],
        "low": low,
        "high": high,
        "rows": list(row_labels) or [str(i) for i in range(rows)],
        "columns": list(column_labels) or [str(i) for i in range(columns)],
    }
    # "</script>" in a label would end the script: no "<" of a label stays one
    written = json.dumps(facts, ensure_ascii=True).replace("<", "\\u003c")
    return _PAGE.replace("__TITLE__", html.escape(title)).replace("__FACTS__", written)
