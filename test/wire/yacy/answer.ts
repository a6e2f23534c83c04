/** One request, as the pages of the peer see it. */
export interface Asked {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Buffer;
}

export interface Answer {
  readonly status: number;
  /** In the status line, where it is not the usual one. */
  readonly reason?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  /** After so many bytes of the body the connection breaks. */
  readonly breaksAfter?: number;
}

const JETTY = {
  'Content-Type': 'text/html; charset=ISO-8859-1',
  'Cache-Control': 'must-revalidate,no-cache,no-store',
};

/** Returns the answer of a page of the peer, dated now. */
export function page(contentType: string, body: string): Answer {
  const now = new Date().toUTCString();
  return {
    status: 200,
    headers: { 'Last-Modified': now, Expires: now, 'Content-Type': contentType },
    body,
  };
}

/**
 * Returns the answer of a page that did its work but has no template for the requested extension.
 */
export function emptyPage(): Answer {
  const now = new Date().toUTCString();
  return { status: 200, headers: { 'Last-Modified': now, Expires: now }, body: '' };
}

export function notFound(path: string): Answer {
  return refused(404, 'Not Found', path);
}

export function refused(status: number, reason: string, path: string): Answer {
  return { status, reason, headers: JETTY, body: errorPage(status, reason, path) };
}

export function unauthorized(path: string, challenge: string): Answer {
  const headers = { 'WWW-Authenticate': challenge, ...JETTY };
  return { status: 401, headers, body: errorPage(401, 'Unauthorized', path) };
}

/** A page failed. The connection ends with it. */
export function failed(path: string, cause = 'java.lang.NullPointerException'): Answer {
  const trace = [
    `javax.servlet.ServletException: /opt/yacy/htroot${path}`,
    '\tat net.yacy.http.servlets.YaCyDefaultServlet.handleTemplate(YaCyDefaultServlet.java:909)',
    '\tat net.yacy.http.servlets.YaCyDefaultServlet.doGet(YaCyDefaultServlet.java:314)',
    '\tat java.base/java.lang.Thread.run(Thread.java:840)',
    `Caused by: ${cause}`,
  ];
  const caused = `<h3>Caused by:</h3><pre>${trace.join('\n')}\n</pre>\n`;
  return {
    status: 500,
    reason: 'Server Error',
    headers: { ...JETTY, Connection: 'close' },
    body: errorPage(500, 'Server Error', path, caused),
  };
}

function errorPage(status: number, reason: string, path: string, more = ''): string {
  const padding = `<br/>${' '.repeat(32)}\n`.repeat(20);
  return `<html>
<head>
<meta http-equiv="Content-Type" content="text/html; charset=UTF-8"/>
<title>Error ${status} ${reason}</title>
</head>
<body><h2>HTTP ERROR ${status}</h2>
<p>Problem accessing ${path}. Reason:
<pre>    ${reason}</pre></p>${more}<br/><hr /><small>YaCy 1.92  - <i> powered by Jetty </i> - </small>${padding}
</body>
</html>
`;
}

export function escapedXml(text: string): string {
  return text
    .replace(/&/g, '&amp;')
    .replace(/</g, '&lt;')
    .replace(/>/g, '&gt;')
    .replace(/"/g, '&quot;');
}
