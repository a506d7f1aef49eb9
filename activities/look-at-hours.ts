import { hoursAt, type AllowedHours, type Hours } from '../core/hours.ts';

export interface HoursRequest {
  readonly hours: AllowedHours;
  /** Milliseconds since the epoch, by the clock of the workflow. */
  readonly nowMs: number;
}

/** A step, because time zones change with the worker's Node: what was decided once must stay so in the history. */
export function lookAtHours({ hours, nowMs }: HoursRequest): Promise<Hours> {
  return Promise.resolve(hoursAt(hours, nowMs));
}
