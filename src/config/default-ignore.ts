/**
 * Patterns in gitignore syntax for what nobody wants to find by a search: secrets first of all, for a peer may publish what it
 * is given. `folders[].ignoreDefaults` switches them off.
 */
export const DEFAULT_IGNORE: readonly string[] = [
  // secrets
  '.env*',
  '.ssh/',
  '.gnupg/',
  '.aws/',
  '.kube/',
  '.docker/',
  '.password-store/',
  '.netrc',
  '.pgpass',
  '.git-credentials',
  'id_rsa',
  'id_dsa',
  'id_ecdsa',
  'id_ed25519',
  '*.kdbx',
  '*.ppk',
  '*.p12',
  '*.pfx',
  // version control, packages and caches
  '.git',
  '.hg',
  '.svn',
  'node_modules/',
  '.cache/',
  // editors: backups, swap files, autosaves and locks of vim, emacs and LibreOffice
  '*~',
  '.*.swp',
  '.*.swo',
  '.*.swx',
  '4913',
  '.#*',
  '\\#*#',
  '.~lock.*#',
  // files that are still being written
  '*.part',
  '*.crdownload',
  '*.tmp',
  // desktops
  '.DS_Store',
  'Thumbs.db',
];
