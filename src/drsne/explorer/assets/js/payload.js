// Reads the data of the page. payload.py describes the format.

const FORMAT = 1;
const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array };

export async function readPayload(text) {
  const content = await inflated(bytesOf(text.trim()));
  const length = new DataView(content).getUint32(0, true);
  const meta = JSON.parse(new TextDecoder().decode(new Uint8Array(content, 4, length)));
  if (meta.format !== FORMAT) throw new Error(`This page has data in the unknown format ${meta.format}.`);
  const start = 4 + length;
  const arrays = meta.arrays.map(({ type, at, length: count }) => {
    const Type = TYPES[type];
    // A slice begins at a multiple of the size of its numbers, which a view of the whole content might not.
    return new Type(content.slice(start + at, start + at + count * Type.BYTES_PER_ELEMENT));
  });
  return { meta, arrays };
}

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflated(bytes) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser is too old to read the data of this page. Browsers from 2023 or later can.");
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}
