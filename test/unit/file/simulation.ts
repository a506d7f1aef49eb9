import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ReplayFault } from '../../../core/errors.ts';
import type { FileConfig } from '../../../sinks/file/config.ts';
import { parseName } from '../../../sinks/file/names.ts';
import { createFileSink } from '../../../sinks/file/sink.ts';
import type { SinkContext } from '../../../sinks/sink.ts';
import { readSegments } from '../../contract/file-destination.ts';
import { makeBatch } from '../../contract/records.ts';
import { never } from '../../contract/sink-contract.ts';
import { ForgetfulDisk, randomFrom, safeDisk, SimulatedFiles } from './simulated-files.ts';
import type { Flaw, Gate } from './simulated-files.ts';

export interface Scenario {
  readonly seed: number;
  readonly writers: number;
  readonly batchesEach: number;
  /** Chance of death at each call to the file system. */
  readonly deaths: number;
  /** Chance, at each call, that all processes die and the disk forgets what was not synced. */
  readonly powerLosses?: number;
  readonly compression?: 'none' | 'gzip';
  /** Something that the simulation must notice. */
  readonly flaw?: Flaw;
}

export interface Outcome {
  readonly deaths: number;
  readonly powerLosses: number;
  readonly calls: number;
  /** Empty when all is as promised. */
  readonly violations: readonly string[];
}

/** Deaths and losses of power end, so that the run ends. */
const DEATHS_MAX = 40;
const DIRECTORY = 'd';
/** Small, so that segments rotate. */
const SEGMENT_BYTES = 3_000;
const BATCH_RECORDS = 4;

/**
 * Several writers with overlapping plans on one directory. One call to the file system happens at a time, and the seed decides
 * whose: so a writer may stall at any point for as long as it takes the others to do anything. Any may die at any point, its
 * write half done, and is started again at its first batch without an answer.
 */
export async function simulate(scenario: Scenario): Promise<Outcome> {
  const folder = await mkdtemp(join(tmpdir(), 'durable-replay-sim-'));
  try {
    await mkdir(join(folder, 'data'));
    await mkdir(join(folder, 'spare'));
    return await new Simulation(scenario, folder).run();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

class Writer {
  readonly plan: string;
  readonly first: number;
  answered = 0;
  isDone = false;

  constructor(plan: string, first: number) {
    this.plan = plan;
    this.first = first;
  }

  batch(number: number) {
    return makeBatch(this.first + number * BATCH_RECORDS, BATCH_RECORDS);
  }
}

/** One process of a writer. */
class Process implements Gate {
  isDead = false;
  readonly death: Promise<'died'>;
  #die!: (word: 'died') => void;
  readonly #simulation: Simulation;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    this.death = new Promise((resolve) => (this.#die = resolve));
  }

  async enter(): Promise<void> {
    await this.#simulation.turn();
    if (!this.isDead && this.#simulation.strikes()) this.die();
    if (this.isDead) {
      this.leave();
      await new Promise(() => undefined);
    }
  }

  leave(): void {
    this.#simulation.endTurn();
  }

  diesWithin(bytes: number): number | null {
    if (!this.#simulation.strikes()) return null;
    this.die();
    return Math.floor(this.#simulation.random() * (bytes + 1));
  }

  die(): void {
    this.isDead = true;
    this.#die('died');
  }
}

class Simulation {
  readonly random: () => number;
  readonly #scenario: Scenario;
  readonly #folder: string;
  readonly #disk: ForgetfulDisk | null;
  readonly #files: SimulatedFiles;
  readonly #violations: string[] = [];
  readonly #answered = new Set<number>();
  #processes: Process[] = [];
  #waiting: (() => void)[] = [];
  #turnEnded: () => void = () => undefined;
  #calls = 0;
  #deaths = 0;
  #powerLosses = 0;

  constructor(scenario: Scenario, folder: string) {
    this.#scenario = scenario;
    this.#folder = folder;
    this.random = randomFrom(scenario.seed);
    this.#disk = scenario.powerLosses === undefined ? null : new ForgetfulDisk(join(folder, 'spare'), scenario.flaw);
    this.#files = new SimulatedFiles(this.#disk ?? safeDisk, scenario.flaw);
  }

  turn(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  endTurn(): void {
    this.#turnEnded();
  }

  strikes(): boolean {
    if (this.#deaths + this.#powerLosses >= DEATHS_MAX || this.random() >= this.#scenario.deaths) return false;
    this.#deaths++;
    return true;
  }

  async run(): Promise<Outcome> {
    const writers = Array.from({ length: this.#scenario.writers }, (_, i) => new Writer(`plan-${i}`, 1 + i * 6));
    const lives = writers.map((writer) => this.#live(writer));
    await this.#schedule(writers);
    await Promise.all(lives);
    await this.#files.closeAll();
    await this.#check(writers).catch((error: unknown) => this.#violations.push(`the check ended with ${String(error)}`));
    return {
      deaths: this.#deaths,
      powerLosses: this.#powerLosses,
      calls: this.#calls,
      violations: this.#violations,
    };
  }

  async #schedule(writers: readonly Writer[]): Promise<void> {
    while (writers.some(({ isDone }) => !isDone)) {
      await nextTurn();
      if (this.#waiting.length === 0) continue;
      if (this.#disk !== null && this.#deaths + this.#powerLosses < DEATHS_MAX && this.random() < this.#scenario.powerLosses!) {
        await this.#losePower();
        continue;
      }
      this.#calls++;
      // The same one goes on more often than not: stalls are long, and progress is made.
      const stays = this.random() < 0.7;
      const chosen = stays ? this.#waiting.length - 1 : Math.floor(this.random() * this.#waiting.length);
      const [go] = this.#waiting.splice(chosen, 1);
      const ended = new Promise<void>((resolve) => (this.#turnEnded = resolve));
      go!();
      await ended;
    }
  }

  async #losePower(): Promise<void> {
    this.#powerLosses++;
    this.#waiting = [];
    for (const process of this.#processes) process.die();
    this.#processes = [];
    const folder = join(this.#folder, 'data', DIRECTORY);
    await this.#disk!.losePower([folder, join(folder, '.index')], this.random).catch(() => undefined);
  }

  /** Starts processes of the writer until all of its batches are answered. */
  async #live(writer: Writer): Promise<void> {
    while (writer.answered < this.#scenario.batchesEach) {
      const process = new Process(this);
      this.#processes.push(process);
      const end = await Promise.race([this.#work(writer, process), process.death]);
      if (end === 'stopped') break;
    }
    writer.isDone = true;
  }

  async #work(writer: Writer, process: Process): Promise<'done' | 'stopped' | 'again'> {
    const sink = createFileSink(this.#config(), this.#context(writer.plan), this.#files.of(process));
    try {
      await sink.open(never());
      while (writer.answered < this.#scenario.batchesEach) {
        const batch = writer.batch(writer.answered);
        await sink.write(batch, never());
        for (const { sequence } of batch) this.#answered.add(Number(sequence));
        writer.answered++;
        this.#checkVisible();
      }
      await sink.close();
      return 'done';
    } catch (error) {
      await sink.close();
      if (error instanceof ReplayFault && error.kind === 'retry') return 'again';
      this.#violations.push(`${writer.plan} stopped: ${String(error)}`);
      return 'stopped';
    }
  }

  /** Whoever reads the segments at any moment sees no record twice: not what a stalled writer adds, nor copies. */
  #checkVisible(): void {
    if (this.#scenario.compression === 'gzip') return;
    const folder = join(this.#folder, 'data', DIRECTORY);
    const names = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
    const lines = names.flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1));
    const sequences = lines.flatMap((line) => /"sequence":(\d+),/.exec(line)?.[1] ?? []);
    if (new Set(sequences).size < sequences.length) this.#violations.push('a reader sees a record twice');
  }

  async #check(writers: readonly Writer[]): Promise<void> {
    const last = createFileSink(this.#config(), this.#context('last'));
    await last.open(never());
    const known = await last.write(makeBatch(1, Math.max(...this.#answered)), never());
    await last.close();
    known.forEach(({ kind }, i) => {
      if (kind !== 'duplicate') this.#violations.push(`sequence ${i + 1} was answered and is not known`);
    });
    const stored = await readSegments(join(this.#folder, 'data', DIRECTORY));
    const times = new Map<number, number>();
    for (const { sequence } of stored) times.set(Number(sequence), (times.get(Number(sequence)) ?? 0) + 1);
    for (const [sequence, count] of times)
      if (count > 1) this.#violations.push(`sequence ${sequence} is stored ${count} times`);
    for (const sequence of this.#answered) if (!times.has(sequence)) this.#violations.push(`sequence ${sequence} is lost`);
    for (const { plan } of writers) {
      const own = stored.filter((line) => line.plan === plan).map(({ sequence }) => sequence);
      if (own.some((sequence, i) => i > 0 && sequence < own[i - 1]!)) this.#violations.push(`${plan} is out of order`);
    }
    await this.#checkSwept();
  }

  /** Temporary files of epochs to come are left: their claims were lost with the power, and will be made again. */
  async #checkSwept(): Promise<void> {
    const names = await readdir(join(this.#folder, 'data', DIRECTORY, '.index'));
    const ours = names.map((name) => parseName(name)!);
    const newest = Math.max(...ours.map(({ kind, epoch }) => (kind === 'journal' ? epoch : 0)));
    const left = ours.filter(({ kind, epoch }) => kind !== 'claim' && epoch < newest);
    if (left.length > 0) this.#violations.push('journals or temporary files of older epochs are left');
  }

  #config(): FileConfig {
    return {
      type: 'file',
      directory: DIRECTORY,
      max_segment_bytes: SEGMENT_BYTES,
      compression: this.#scenario.compression ?? 'none',
      require_json: false,
      max_record_bytes: null,
    };
  }

  #context(plan: string): SinkContext {
    const log = { info: () => undefined, warn: (fields: object, message: string) => this.#warn(fields, message) };
    return { dataRoot: join(this.#folder, 'data'), plan, run: 'run', begun: false, secret: () => '', log };
  }

  #warn(fields: object, message: string): void {
    if (message.includes('corrupt')) this.#violations.push(`${message} ${JSON.stringify(fields)}`);
  }
}
