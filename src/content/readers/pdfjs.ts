/**
 * The parts of PDF.js that read text, in its build for older engines, which Node 20 is. Its worker is loaded beside it and runs in
 * this thread, which is one of its own already.
 */
import './pdfjs-globals.js';
import 'pdfjs-dist/legacy/build/pdf.worker.mjs';

export { getDocument, VerbosityLevel } from 'pdfjs-dist/legacy/build/pdf.mjs';
