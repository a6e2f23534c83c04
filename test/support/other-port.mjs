// Has a program connect to another port than it means; loaded by NODE_OPTIONS=--import. OTHER_PORT
// names both, as 8090:9000.
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';

const [from, to] = process.env.OTHER_PORT.split(':').map(Number);
const { connect } = net;

net.connect = (options, ...more) => {
  const isMeant = typeof options === 'object' && Number(options.port) === from;
  return connect(isMeant ? { ...options, port: to } : options, ...more);
};
// Those who import the function by its name have this one, too.
syncBuiltinESMExports();
