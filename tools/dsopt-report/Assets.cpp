//===- Assets.cpp - style and script of the page --------------------------===//

#include "Assets.h"

const char *const dsopt::report::kStyle = R"(
:root { color-scheme: light dark; --back: #fff; --text: #1a1d21; --soft: #667079; --line: #e3e7eb; --card: #f6f8fa;
  --c0: #2563eb; --c1: #e07b00; --c2: #0a9464; --c3: #d92d3a; --c4: #7c4ddb; --c5: #0891b2; --c6: #c026a8; --c7: #6b8e00; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --text: #e6e9ec; --soft: #98a2ab; --line: #2b3136; --card: #1c2024;
  --c0: #6ea8ff; --c1: #ffab4a; --c2: #3fcf9b; --c3: #ff7a80; --c4: #b294ff; --c5: #4dd0e6; --c6: #f083de; --c7: #b5d44b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px 20px 60px; max-width: 1340px; background: var(--back); color: var(--text);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 21px; margin: 0 0 2px; } h2 { font-size: 16px; margin: 32px 0 10px; } p { margin: 4px 0; }
.soft, .note { color: var(--soft); } .note::before { content: "! "; color: var(--c1); font-weight: bold; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 540px), 1fr)); gap: 16px; }
.even { grid-auto-rows: 1fr; grid-template-columns: repeat(auto-fill, minmax(min(100%, 540px), 1fr)); } .even + .even { margin-top: 16px; }
figure { margin: 0; padding: 12px 14px; background: var(--card); border: 1px solid var(--line); border-radius: 8px; position: relative; }
figcaption { font-weight: 600; } svg { width: 100%; height: auto; display: block; overflow: visible; }
.head { display: flex; justify-content: space-between; gap: 4px 14px; margin-bottom: 6px; } .head label, .smoothing, summary { color: var(--soft); font-size: 12.5px; }
input { margin: 0 5px 0 0; vertical-align: -1px; accent-color: var(--soft); } label { cursor: pointer; }
:focus-visible { outline: 2px solid var(--c0); outline-offset: 2px; border-radius: 3px; }
.smoothing { border: 0; padding: 0; margin: 0 0 10px; display: flex; flex-wrap: wrap; gap: 4px 14px; } .smoothing legend { float: left; padding: 0; }
svg text { font-size: 11px; fill: var(--soft); } svg .grid { stroke: var(--line); stroke-width: 1; }
svg .mark, .cursor line { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 3 3; }
svg path { fill: none; stroke-width: 1.6; stroke-linejoin: round; vector-effect: non-scaling-stroke; } svg .dashed { stroke-dasharray: 4 3; stroke-width: 1.2; } svg .dotted { stroke-dasharray: 1.5 3; }
svg .bad { fill: var(--c3); } svg .off, svg .smooth { display: none; }
figure:not(:has(.log:checked)) :is(.logarithmic, .when-log), figure:has(.log:checked) .linear { display: none; }
body:has(#smooth1:checked) .s1, body:has(#smooth2:checked) .s2, body:has(#smooth3:checked) .s3 { display: inline; }
body:not(:has(#smooth0:checked)) .raw { opacity: 0.25; }
.legend { margin-top: 6px; color: var(--soft); display: flex; flex-wrap: wrap; gap: 4px 14px; overflow-wrap: anywhere; }
details { margin-top: 6px; } summary { cursor: pointer; } details .legend { max-height: 180px; overflow-y: auto; }
.legend i, th i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }
.tip { position: absolute; z-index: 1; pointer-events: none; padding: 5px 9px; max-width: 90%; background: var(--back); border: 1px solid var(--line); border-radius: 6px;
  box-shadow: 0 2px 8px #0003; font-size: 12px; font-variant-numeric: tabular-nums; } .tip:empty { display: none; }
.tip div { display: flex; justify-content: space-between; gap: 12px; } .tip i { width: 8px; height: 8px; border-radius: 2px; margin: 5px 6px 0 0; flex: none; } .tip b { margin-left: auto; }
.tip span { overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; } .scroll { overflow-x: auto; }
th, td { text-align: left; padding: 5px 14px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; } th, .compared td { white-space: nowrap; } thead th { color: var(--soft); font-weight: 500; } code { font: 12px ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
@media (max-width: 600px) { body { padding: 14px 10px 40px; } figure { padding: 10px 8px; } svg text { font-size: 14px; } }
)";

const char *const dsopt::report::kScript = R"(
const left = 58, right = 608, read = new WeakMap();
function linesOf(svg) {
  if (!read.has(svg)) read.set(svg, [...svg.querySelectorAll('desc')].map(d => ({ kind: d.dataset.class, name: d.dataset.name,
    values: d.textContent.split(',').map(v => v.split(':')).map(([s, v]) => [Number(s), v]) })));
  return read.get(svg).filter((line, i) => !svg.querySelector(`g[data-line="${i}"].off`));
}
function nearest(values, step) {
  let low = 0, high = values.length - 1;
  while (low < high) { const middle = (low + high) >> 1; if (values[middle][0] < step) low = middle + 1; else high = middle; }
  return low > 0 && step - values[low - 1][0] <= values[low][0] - step ? low - 1 : low;
}
function hide(svg) { svg.querySelector('.cursor').replaceChildren(); svg.parentNode.querySelector('.tip')?.replaceChildren(); delete svg.dataset.at; }
function show(svg, wanted) {
  const [least, most] = svg.dataset.x.split(' ').map(Number), lines = linesOf(svg), figure = svg.parentNode;
  if (!lines.length) return hide(svg);
  const near = lines.map(line => line.values[nearest(line.values, wanted)]);
  const at = near.reduce((a, b) => Math.abs(b[0] - wanted) < Math.abs(a[0] - wanted) ? b : a)[0];
  let tip = figure.querySelector('.tip');
  if (!tip) { tip = document.createElement('div'); tip.className = 'tip'; tip.setAttribute('role', 'status'); figure.append(tip); }
  tip.replaceChildren('step ' + at);
  lines.forEach((line, i) => {
    // A run that has ended, or not begun, has no value here.
    if (at < line.values[0][0] || at > line.values[line.values.length - 1][0]) return;
    const row = document.createElement('div'), mark = document.createElement('i'), name = document.createElement('span'), value = document.createElement('b');
    const [step, number] = line.values[nearest(line.values, at)];
    mark.className = line.kind; name.textContent = line.name + (step === at ? '' : ` (step ${step})`); value.textContent = number;
    row.append(mark, name, value); tip.append(row);
  });
  const place = left + (at - least) / (most - least) * (right - left);
  svg.querySelector('.cursor').innerHTML = `<line x1="${place}" x2="${place}" y1="10" y2="206"/>`;
  svg.dataset.at = at;
  const width = figure.clientWidth;
  const box = svg.getBoundingClientRect(), outer = figure.getBoundingClientRect(), rulePlace = box.left - outer.left + place / 620 * box.width;
  tip.style.top = box.top - outer.top + 8 + 'px';
  if (rulePlace < width / 2) { tip.style.left = rulePlace + 10 + 'px'; tip.style.right = 'auto'; }
  else { tip.style.right = width - rulePlace + 10 + 'px'; tip.style.left = 'auto'; }
}
function follow(e) {
  const svg = e.target.closest?.('svg[data-x]');
  for (const other of document.querySelectorAll('svg[data-at]')) if (other !== svg && other !== document.activeElement) hide(other);
  if (!svg) return;
  const box = svg.getBoundingClientRect(), [least, most] = svg.dataset.x.split(' ').map(Number);
  show(svg, least + ((e.clientX - box.left) / box.width * 620 - left) / (right - left) * (most - least));
}
document.addEventListener('pointermove', follow); document.addEventListener('pointerdown', follow);
document.addEventListener('focusout', e => { if (e.target.dataset?.at) hide(e.target); });
document.addEventListener('keydown', e => {
  const svg = e.target, move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }[e.key];
  if (!svg.matches?.('svg[data-x]')) return;
  if (e.key === 'Escape') return hide(svg);
  if (!move) return;
  e.preventDefault();
  const steps = [...new Set(linesOf(svg).flatMap(line => line.values.map(v => v[0])))].sort((a, b) => a - b);
  const now = svg.dataset.at === undefined ? (move < 0 ? steps.length : -1) : steps.indexOf(Number(svg.dataset.at));
  show(svg, steps[Math.min(Math.max(now + move, 0), steps.length - 1)]);
});
const keep = {};
function pick(box) { for (const line of box.closest('figure').querySelectorAll(`g[data-line="${box.dataset.line}"]`)) line.classList.toggle('off', !box.checked); }
document.addEventListener('change', e => {
  const box = e.target, figure = box.closest('figure');
  if (!figure) return;
  if (box.dataset.line !== undefined) pick(box);
  (keep[figure.dataset.key] ??= {})[box.dataset.line === undefined ? 'log' : box.parentNode.textContent] = box.checked;
});
)";

/// Asks for the run's figures anew and puts them in place of the old ones; what was chosen stays.
const char *const dsopt::report::kLiveScript = R"(
const state = document.getElementById('state'), main = document.querySelector('main');
let version = Number(document.body.dataset.version);
function replaceFigures(text) {
  const open = [...main.querySelectorAll('details[open]')].map(d => d.closest('figure').dataset.key);
  const looked = [...main.querySelectorAll('svg[data-at]')].map(svg => [svg.parentNode.dataset.key, Number(svg.dataset.at)]);
  const focused = document.activeElement?.closest?.('figure')?.dataset.key, tag = document.activeElement?.dataset;
  main.innerHTML = text;
  for (const figure of main.querySelectorAll('figure')) {
    const key = figure.dataset.key, chosen = keep[key] ?? {};
    for (const box of figure.querySelectorAll('input')) {
      const value = chosen[box.dataset.line === undefined ? 'log' : box.parentNode.textContent];
      if (value !== undefined) { box.checked = value; if (box.dataset.line !== undefined) pick(box); }
    }
    if (open.includes(key)) figure.querySelector('details')?.setAttribute('open', '');
    for (const [which, step] of looked) if (which === key) show(figure.querySelector('svg'), step);
    if (focused && focused === key) (tag.line === undefined ? figure.querySelector(tag.x ? 'svg' : '.log') : figure.querySelector(`input[data-line="${tag.line}"]`))?.focus();
  }
}
async function ask() {
  let pause = 1000;
  try {
    const answer = await (await fetch('data?version=' + version, { cache: 'no-store' })).json();
    if (answer.version !== version) { version = answer.version; replaceFigures(answer.page); }
    state.textContent = answer.error ? answer.error : answer.ended ? 'the run has ended' : 'live';
  } catch { state.textContent = 'dsopt-report does not answer any more'; pause = 5000; }
  setTimeout(ask, pause);
}
ask();
)";
