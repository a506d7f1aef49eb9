export { replayPlan } from './replay-plan.ts';
export { checkTarget } from './check-target.ts';
export { drainSpool } from './drain-spool.ts';
export { sweepTopic } from './sweep-topic.ts';
export { reconcileTopics } from './reconcile-topics.ts';
