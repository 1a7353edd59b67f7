// 20 definitions: those that are built in, and variants of them.

export const SEEDS = [0, 7, 123456789];

/**
 * @param {{ examples: () => string, example: (name: string) => string }} corsair
 * @returns {[string, string][]}
 */
export function definitions(corsair) {
  /** @type {[string, string][]} */
  const made = JSON.parse(corsair.examples()).map((/** @type {string} */ name) => [name, corsair.example(name)]);
  const variants = [
    { concurrency: 2 }, { service_time: { exponential: "3ms" } }, { service_time: { percentiles: { 50: "2ms", 99: "20ms" } } },
  ];
  for (const [name, text] of made.slice(0, 7)) {
    for (const [number, change] of variants.entries()) {
      if (made.length === 20) return made;
      const definition = JSON.parse(text);
      for (const service of definition.services) {
        if (service.package === "store") Object.assign(service, change);
      }
      definition.load = { www: { rate: 150, arrivals: "poisson" } };
      if (!definition.services.some((/** @type {any} */ one) => one.name === "www")) delete definition.load;
      made.push([`${name}${number}`, JSON.stringify(definition)]);
    }
  }
  return made;
}
