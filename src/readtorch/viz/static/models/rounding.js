// How many bytes the caching allocator sets aside for a request: as figures/rounding.py.
const model = ({ size }) => {
  const block = Math.max(512, Math.ceil(size / 512) * 512);
  const unused = commas(block - size);
  const say = `A request for ${commas(size)} bytes gets a block of ${commas(block)} bytes; ${unused} of them stay unused.`;
  return { block, used: size / block, say };
};
