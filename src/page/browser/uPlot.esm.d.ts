// The server gives the file itself, from the package.
export { default } from 'uplot';
