// Files of undici that its own types do not name.

declare module 'undici/lib/dispatcher/client.js' {
  const client: typeof import('undici').Client;
  export = client;
}

declare module 'undici/lib/core/connect.js' {
  const connect: typeof import('undici').buildConnector;
  export = connect;
}

declare module 'undici/lib/core/errors.js' {
  const errors: typeof import('undici').errors;
  export = errors;
}
