interface Measured {
  readonly perSecond: number;
}

interface Comparison {
  readonly batchSize: number;
  readonly ratio: number;
  readonly bare: readonly Measured[];
  readonly workflow: readonly Measured[];
}

type Scale = (perSecond: number) => number;

const width = 720;
const rowHeight = 92;
const left = 150;
const top = 40;

/** Medians as bars, each run as a dot: the spread is as much of the result as the median. SVG text. */
export function plot(comparisons: readonly Comparison[]): string {
  const most = Math.max(...comparisons.flatMap(({ bare, workflow }) => [...bare, ...workflow]).map((run) => run.perSecond));
  const x: Scale = (perSecond) => left + (perSecond / most) * (width - left - 20);
  const height = top + comparisons.length * rowHeight + 10;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    '<text x="12" y="22" font-weight="bold">Records a second: the workflow beside a bare loop</text>',
    ...comparisons.map((one, index) => row(one, top + index * rowHeight, x)),
    '</svg>',
    '',
  ].join('\n');
}

function row({ batchSize, ratio, bare, workflow }: Comparison, y: number, x: Scale): string {
  return [
    `<text x="12" y="${y + 20}">${batchSize.toLocaleString('en')} a batch</text>`,
    `<text x="12" y="${y + 40}" fill="#555">ratio ${ratio.toFixed(2)}</text>`,
    bar('bare loop', bare, { y, colour: '#64748b', x }),
    bar('workflow', workflow, { y: y + 34, colour: '#2563eb', x }),
  ].join('\n');
}

function bar(
  name: string,
  runs: readonly Measured[],
  at: { readonly y: number; readonly colour: string; readonly x: Scale },
): string {
  const { y, colour, x } = at;
  const middle = median(runs.map(({ perSecond }) => perSecond));
  return [
    `<rect x="${left}" y="${y + 4}" width="${(x(middle) - left).toFixed(1)}" height="22" fill="${colour}"/>`,
    ...runs.map(
      ({ perSecond }) => `<circle cx="${x(perSecond).toFixed(1)}" cy="${y + 15}" r="3" fill="#111" fill-opacity=".5"/>`,
    ),
    `<text x="${left + 8}" y="${y + 20}" fill="#fff">${name}, ${Math.round(middle).toLocaleString('en')}</text>`,
  ].join('\n');
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
