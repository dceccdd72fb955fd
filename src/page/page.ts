const STYLE = `
  :root { color-scheme: light dark; --ink: #1c2330; --dim: #5d6675; --paper: #ffffff; --line: #dde1e8; --good: #1a7f37; --bad: #c62828; }
  @media (prefers-color-scheme: dark) {
    :root { --ink: #e6e9ef; --dim: #9aa3b2; --paper: #14181f; --line: #303743; --good: #57c26b; --bad: #ff6b6b; }
  }
  body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
    font: 16px/1.5 system-ui, sans-serif; }
  h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
  .verdict { font-weight: 600; } .good { color: var(--good); } .bad { color: var(--bad); }
  .figures { display: flex; flex-wrap: wrap; gap: 1rem 2rem; margin: 1.25rem 0; padding: 0; list-style: none; }
  .figures b { display: block; font-size: 1.2rem; } .figures span, p.note, p.legend { color: var(--dim); font-size: .9rem; }
  svg { width: 100%; height: auto; } .grid { stroke: var(--line); } .tick { fill: var(--dim); font-size: 12px; }
  polyline { fill: none; stroke: var(--ink); stroke-width: 2; } polyline.dashed { stroke-width: 1.25; stroke-dasharray: 5 3; }
  .mark { stroke: var(--dim); stroke-dasharray: 4 4; } polygon { stroke: var(--paper); stroke-width: .5; }
  .scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
  th, td { padding: .25rem 1.25rem .25rem 0; text-align: right; border-bottom: 1px solid var(--line); }
  th { color: var(--dim); font-weight: 500; } th:first-child, td:first-child { text-align: left; }
  .swatch { display: inline-block; width: .8em; height: .8em; margin-right: .5em; border-radius: 2px; }
  .legend span { margin-right: 1.25rem; } .stroke { display: inline-block; width: 1.5em; margin: 0 .5em .25em 0; border-top: 2px solid var(--ink); }
  .stroke.dashed { border-top-style: dashed; border-top-width: 1px; }
`;

/** A page that needs nothing but itself. */
export interface Page {
  /** In the window's title; text. */
  readonly title: string;
  /** On top of the page; text. */
  readonly heading: string;
  /** In one sentence, and whether it is good news. */
  readonly verdict: { readonly text: string; readonly good: boolean };
  /** HTML below it. */
  readonly body: readonly string[];
}

export function renderPage({ title, heading, verdict, body }: Page): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>${escapeHtml(heading)}</h1>
<p class="verdict ${verdict.good ? 'good' : 'bad'}">${escapeHtml(verdict.text)}</p>
${body.join('\n')}
</body>
</html>
`;
}

/** Values with a word below each. All text. */
export function figures(items: readonly (readonly [value: string, name: string])[]): string {
  const entries = items.map(([value, name]) => `<li><b>${escapeHtml(value)}</b><span>${escapeHtml(name)}</span></li>`);
  return `<ul class="figures">${entries.join('')}</ul>`;
}

/** A table. The head is text, cells are HTML: {@link escapeHtml} what comes from outside. */
export function htmlTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const heads = head.map((name) => `<th>${escapeHtml(name)}</th>`).join('');
  const lines = rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`);
  return `<div class="scroll"><table><tr>${heads}</tr>${lines.join('')}</table></div>`;
}

/** Text, safe to stand in HTML, in an attribute too. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}
