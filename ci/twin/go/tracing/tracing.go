// Package tracing has what the generator and the services of the laboratory share: the export of spans, and requests
// that carry them.
package tracing

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Carrier writes the context of a span into the headers of a request.
var Carrier = propagation.TraceContext{}

// Start returns a provider whose spans go to a collector. Every span is wanted: no queue may drop one.
func Start(collector, service string, about ...attribute.KeyValue) *sdktrace.TracerProvider {
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(collector+"/v1/traces"))
	if err != nil {
		log.Fatal(err)
	}
	about = append(about, attribute.String("service.name", service))
	return sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter, sdktrace.WithMaxQueueSize(200_000), sdktrace.WithMaxExportBatchSize(2_000)),
		sdktrace.WithResource(resource.NewSchemaless(about...)))
}

// Get sends a request and reads its answer. The span fails with the request, and with a status of 500 or more.
func Get(ctx context.Context, client *http.Client, span trace.Span, url string) error {
	request, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return err
	}
	Carrier.Inject(ctx, propagation.HeaderCarrier(request.Header))
	answer, err := client.Do(request)
	if err == nil {
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if answer.StatusCode >= 500 {
			err = fmt.Errorf("status %d", answer.StatusCode)
		}
	}
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	return err
}
