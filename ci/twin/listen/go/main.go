// Command send sends spans of a web service and its database with the official SDK, by each exporter and compression.
//
// Usage: send ADDRESS TRACES
package main

import (
	"context"
	"log"
	"os"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

func provider(service string, client otlptrace.Client) *sdktrace.TracerProvider {
	exporter, err := otlptrace.New(context.Background(), client)
	if err != nil {
		log.Fatal(err)
	}
	return sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter, sdktrace.WithMaxQueueSize(100_000)),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service))))
}

func send(name string, client func() otlptrace.Client, traces int) {
	web, db := provider("web-"+name, client()), provider("db-"+name, client())
	start := time.Unix(1_700_000_000, 0)
	for number := range traces {
		at := func(millis int) time.Time {
			return start.Add(time.Duration(number*10+millis) * time.Millisecond)
		}
		begin := func(from *sdktrace.TracerProvider, ctx context.Context, name string, kind trace.SpanKind, millis int) (context.Context, trace.Span) {
			return from.Tracer("corsair").Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(at(millis)))
		}
		ctx, page := begin(web, context.Background(), "page", trace.SpanKindServer, 0)
		ctx, get := begin(web, ctx, "get", trace.SpanKindClient, 1)
		_, server := begin(db, ctx, "get", trace.SpanKindServer, 2)
		server.End(trace.WithTimestamp(at(5)))
		get.End(trace.WithTimestamp(at(6)))
		page.End(trace.WithTimestamp(at(8)))
	}
	for _, one := range []*sdktrace.TracerProvider{web, db} {
		if err := one.Shutdown(context.Background()); err != nil {
			log.Fatal(name, ": ", err)
		}
	}
}

func main() {
	address := os.Args[1]
	traces, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	clients := map[string]func() otlptrace.Client{
		"go-http": func() otlptrace.Client {
			return otlptracehttp.NewClient(otlptracehttp.WithEndpoint(address), otlptracehttp.WithInsecure())
		},
		"go-http-gzip": func() otlptrace.Client {
			return otlptracehttp.NewClient(otlptracehttp.WithEndpoint(address), otlptracehttp.WithInsecure(),
				otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
		},
		"go-grpc": func() otlptrace.Client {
			return otlptracegrpc.NewClient(otlptracegrpc.WithEndpoint(address), otlptracegrpc.WithInsecure())
		},
		"go-grpc-gzip": func() otlptrace.Client {
			return otlptracegrpc.NewClient(otlptracegrpc.WithEndpoint(address), otlptracegrpc.WithInsecure(),
				otlptracegrpc.WithCompressor("gzip"))
		},
	}
	for name, client := range clients {
		send(name, client, traces)
	}
}
