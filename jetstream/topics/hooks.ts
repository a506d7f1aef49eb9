import type { CommitResult } from '../../core/group.ts';

/** What a caller wants to do, for the authorisation hook. */
export interface TopicAccess {
  readonly action: 'create' | 'delete' | 'describe' | 'push' | 'read' | 'consume' | 'commit' | 'reset' | 'groups' | 'expire';
  readonly topic: string;
  readonly group?: string;
}

/** What happened, for metrics: counts and names, never keys or payloads. */
export type TopicEvent =
  | {
      readonly kind: 'push';
      readonly topic: string;
      readonly partition: number;
      readonly status: 'accepted' | 'rejected' | 'uncertain';
      readonly records: number;
      /** Of the accepted ones: those that were there already. */
      readonly duplicates: number;
      /** null unless rejected or uncertain. */
      readonly code: string | null;
    }
  | {
      readonly kind: 'commit';
      readonly topic: string;
      readonly group: string;
      readonly partition: number;
      readonly result: CommitResult;
    }
  | { readonly kind: 'contended'; readonly topic: string; readonly group: string; readonly partition: number }
  | {
      readonly kind: 'dead_letter';
      readonly topic: string;
      readonly group: string;
      readonly partition: number;
      readonly offset: number;
    };

export interface TopicHooks {
  /** May this caller do that? Asked before anything is read or written. False is answered with `denied`. */
  readonly authorize?: (access: TopicAccess) => boolean | Promise<boolean>;
  /** null when the record fits, else what is wrong with it, without its values. The whole group of a bad record is rejected. */
  readonly checkSchema?: (topic: string, payload: unknown) => string | null;
  readonly observe?: (event: TopicEvent) => void;
}
