import { CharStreams, CommonTokenStream } from 'antlr4ts';
import { CaseChangingStream } from 'antlr4ts-sql/dist/src/models/CaseChangingStream.js';
import { PlSqlLexer } from 'antlr4ts-sql/dist/src/grammar-output/plsql/PlSqlLexer.js';
import { PlSqlParser } from 'antlr4ts-sql/dist/src/grammar-output/plsql/PlSqlParser.js';

/**
 * Judges a statement by the grammar of Oracle's SQL that the ANTLR project keeps, and by rules of our own for what that grammar
 * is known to let pass. Answers what is wrong with it: nothing when it is a statement of Oracle.
 */
export function oracleSqlProblems(sql: string): string[] {
  // The grammar takes no value in quotes here.
  if (/^ALTER SESSION\b/.test(sql)) return settingSql.test(sql) ? [] : ['not ALTER SESSION SET NAME = VALUE'];
  const problems: string[] = [];
  const listener = {
    syntaxError(_: unknown, __: unknown, line: number, column: number, message: string) {
      // What it expected instead is a list of two thousand words.
      problems.push(`${line}:${column} ${message.slice(0, MESSAGE_CHARACTERS_MAX)}`);
    },
  };
  const lexer = new PlSqlLexer(new CaseChangingStream(CharStreams.fromString(`${sql};`), true));
  lexer.removeErrorListeners();
  lexer.addErrorListener(listener);
  const parser = new PlSqlParser(new CommonTokenStream(lexer));
  parser.removeErrorListeners();
  parser.addErrorListener(listener);
  parser.sql_script();
  return [...problems, ...laxities(sql)];
}

const MESSAGE_CHARACTERS_MAX = 200;
const settingSql = /^ALTER SESSION SET [A-Z_]+ = ('[^']*'|[A-Z]+)$/;

function laxities(sql: string): string[] {
  const problems: string[] = [];
  const bare = sql.replace(/'(?:[^']|'')*'|"[^"]*"/g, '""');
  if (bare.includes('?')) problems.push('a bind that is a question mark');
  if (bare.includes('`')) problems.push('a name in backticks');
  if (bare.trimEnd().endsWith(';')) problems.push('a semicolon at the end');
  if (/^\s*MERGE\b/i.test(bare) && !/\bWHEN\b/i.test(bare)) problems.push('MERGE without WHEN');
  const type = /\b(TEXT|BIGINT|BIGSERIAL|BYTEA|TINYINT|DATETIME|VARBINARY|LONGBLOB|BOOLEAN)\b/i.exec(bare)?.[1];
  if (type !== undefined) problems.push(`a type of another database: ${type}`);
  for (const [, name] of sql.replace(/'(?:[^']|'')*'/g, "''").matchAll(/"([^"]*)"/g)) {
    if (name === '' || Buffer.byteLength(name!) > 128) problems.push('a name without, or with more than 128 bytes');
  }
  const binds = [...bare.matchAll(/:(\w+)/g)].map(([, name]) => name);
  binds.forEach((name, i) => {
    if (name !== String(i + 1)) problems.push(`the bind :${name} at place ${i + 1}`);
  });
  const opened = bare.split('(').length - bare.split(')').length;
  if (opened !== 0) problems.push('parentheses that do not match');
  return problems;
}
