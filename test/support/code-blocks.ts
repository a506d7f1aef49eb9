/** The code blocks of a Markdown page, for tests that do what the page says. */
export interface CodeBlock {
  /** What stands behind the opening fence, such as `json plan.json`. */
  readonly info: string;
  readonly text: string;
}

export function codeBlocks(markdown: string): CodeBlock[] {
  return [...markdown.matchAll(/^```([^\n]*)\n(.*?)^```$/gms)].map(([, info, text]) => ({ info: info!.trim(), text: text! }));
}

export function textsOf(blocks: readonly CodeBlock[], info: string): string[] {
  return blocks.filter((block) => block.info === info).map(({ text }) => text);
}

export function statementsOf(sql: string): string[] {
  return sql.split(/;\s*$/m).filter((statement) => statement.trim() !== '');
}
