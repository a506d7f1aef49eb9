const bodyBytes = 300;

/** JSON of 300 bytes; a refused one is longer than the tables of the bench allow. */
export function bodyOf(id: number, refused = false): string {
  const head = `{"id":${id},"customer":"customer ${id % 1_000}","total":${id % 997}.50,"lines":[{"sku":"a-1","n":2},{"sku":"b-2","n":1}],"note":"`;
  return `${head}${'x'.repeat(refused ? 1_200 : bodyBytes - head.length - 2)}"}`;
}
