/** SHA-256 of bytes, in hexadecimal digits. That of browsers is asynchronous, and names are needed at once. */
export function sha256(bytes: Uint8Array): string {
  const state = roots(8, 2);
  const words = new Uint32Array(64);
  for (const block of blocksOf(bytes)) addBlock(state, block, words);
  return [...state].map((word) => word.toString(16).padStart(8, "0")).join("");
}

const ROUNDS = roots(64, 3);

/** The first 32 bits of the fractions of the roots of the first primes. */
function roots(count: number, degree: 2 | 3): Uint32Array {
  const found: number[] = [];
  for (let number = 2; found.length < count; number++) {
    let divisor = 2;
    while (number % divisor !== 0) divisor++;
    if (divisor !== number) continue;
    const root = degree === 2 ? Math.sqrt(number) : Math.cbrt(number);
    found.push(Math.floor((root - Math.floor(root)) * 2 ** 32));
  }
  return Uint32Array.from(found);
}

function* blocksOf(bytes: Uint8Array): Generator<DataView> {
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  new DataView(padded.buffer).setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n);
  for (let at = 0; at < padded.length; at += 64) yield new DataView(padded.buffer, at, 64);
}

function rotate(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by));
}

function addBlock(state: Uint32Array, block: DataView, words: Uint32Array): void {
  const word = (at: number) => words[at] as number;
  for (let at = 0; at < 16; at++) words[at] = block.getUint32(at * 4);
  for (let at = 16; at < 64; at++) {
    const [early, late] = [word(at - 15), word(at - 2)];
    const first = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3);
    const second = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10);
    words[at] = word(at - 16) + first + word(at - 7) + second;
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  for (let at = 0; at < 64; at++) {
    const high = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const chosen = (e & f) ^ (~e & g);
    const first = (h + high + chosen + (ROUNDS[at] as number) + word(at)) | 0;
    const low = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + low + majority) | 0];
  }
  for (const [at, value] of [a, b, c, d, e, f, g, h].entries()) state[at] = (state[at] as number) + value;
}
