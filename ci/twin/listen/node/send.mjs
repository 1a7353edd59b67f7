// Sends spans of a web service and its database with the official SDK, whose exporter over HTTP writes JSON.
//
// Usage: node send.mjs ADDRESS TRACES
import { SpanKind, context, trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";

const [address, traces] = [process.argv[2], Number(process.argv[3])];

function provider(service, compression) {
  const exporter = new OTLPTraceExporter({ url: `http://${address}/v1/traces`, compression });
  return new BasicTracerProvider({
    resource: resourceFromAttributes({ "service.name": service }),
    spanProcessors: [new BatchSpanProcessor(exporter, { maxQueueSize: 100_000 })],
  });
}

for (const [name, compression] of [["node-json", "none"], ["node-json-gzip", "gzip"]]) {
  const [web, db] = [provider(`web-${name}`, compression), provider(`db-${name}`, compression)];
  for (let number = 0; number < traces; number += 1) {
    const at = (millis) => 1_700_000_000_000 + number * 10 + millis;
    const begin = (from, inside, name, kind, millis) =>
      from.getTracer("corsair").startSpan(name, { kind, startTime: at(millis) }, inside);
    const root = context.active();
    const page = begin(web, root, "page", SpanKind.SERVER, 0);
    const get = begin(web, trace.setSpan(root, page), "get", SpanKind.CLIENT, 1);
    const server = begin(db, trace.setSpan(root, get), "get", SpanKind.SERVER, 2);
    server.end(at(5));
    get.end(at(6));
    page.end(at(8));
  }
  for (const one of [web, db]) {
    await one.forceFlush();
    await one.shutdown();
  }
}
