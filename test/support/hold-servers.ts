import { startServers } from '../../scripts/servers/servers.ts';

/** A program that starts both servers, says where they are in one line of JSON, and ends as its argument says. */
const servers = await startServers({ env: { ...process.env, NATS_URL: '', TEMPORAL_ADDRESS: '' } });
const { nats, temporal } = servers;
const facts = { pids: [nats?.pid(), temporal?.pid()], logs: [nats?.logFile, temporal?.logFile], natsUrl: servers.natsUrl };
const ending = process.argv[2];
if (ending === 'interrupt') {
  process.on('SIGINT', () => {
    process.stdin.on('data', () => void servers.stop().then(() => process.exit(0)));
    process.stdout.write('draining\n');
  });
}
process.stdout.write(`${JSON.stringify(facts)}\n`);
if (ending === 'crash') throw new Error('a fault nobody caught');
if (ending !== 'end') setInterval(() => {}, 60_000);
