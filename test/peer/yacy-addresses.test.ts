import { expect, it } from 'vitest';
import { yacyAddresses } from '../../src/peer/dialects/yacy.js';

it.each(
  `local file:///srv/a.txt http://localhost/a http://127.0.0.1:8090/a http://172.16.0.1/a http://192.168.1.1/a
   local http://[::1]/a http://[fd12::1]/a https://wiki.internal/a http://user@nas:80/a
   global http://example.org/a https://files.example.org:8443/local/a http://172.32.0.1/a
   global http://[2001:db8::1]/a http://local.example.org/a`
    .split('\n')
    .map((line) => line.trim().split(' ')),
)('the reach %s has addresses such as %s', (reach, ...urls) => {
  for (const url of urls) expect([url, yacyAddresses.reachOf(url)]).toEqual([url, reach]);
});
