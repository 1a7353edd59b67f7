// A service of the laboratory. It runs the steps of its endpoints and records spans with the OpenTelemetry SDK.
// ../README.md has the description, which all languages share.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"laboratory/tracing"
)

type step struct {
	Work     float64  `json:"work"`
	Sigma    float64  `json:"sigma"`
	Call     string   `json:"call"`
	Parallel []string `json:"parallel"`
	Chance   float64  `json:"chance"`
	Timeout  float64  `json:"timeout"`
	Retries  int      `json:"retries"`
}

type spec struct {
	Name      string            `json:"name"`
	Port      int               `json:"port"`
	Slots     int               `json:"slots"`
	Endpoints map[string][]step `json:"endpoints"`
}

var (
	client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512}}
	slow   atomic.Uint64
	tracer trace.Tracer
)

func work(s step) {
	factor := math.Float64frombits(slow.Load())
	wait := s.Work * math.Exp(s.Sigma*rand.NormFloat64()) * factor
	time.Sleep(time.Duration(wait * 1e6))
}

func attempt(ctx context.Context, url string, timeout float64) error {
	if timeout > 0 {
		bounded, cancel := context.WithTimeout(ctx, time.Duration(timeout*1e6))
		defer cancel()
		ctx = bounded
	}
	host := strings.SplitN(strings.TrimPrefix(url, "http://"), "/", 2)[0]
	ctx, span := tracer.Start(ctx, "GET", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("server.address", host)))
	defer span.End()
	return tracing.Get(ctx, client, span, url)
}

func call(ctx context.Context, url string, s step) error {
	var err error
	for try := 0; try <= s.Retries; try++ {
		if err = attempt(ctx, url, s.Timeout); err == nil {
			return nil
		}
	}
	return err
}

func run(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if s.Chance > 0 && rand.Float64() >= s.Chance {
			continue
		}
		if s.Work > 0 {
			work(s)
		}
		if s.Call != "" {
			if err := call(ctx, s.Call, s); err != nil {
				return err
			}
		}
		if len(s.Parallel) > 0 {
			var all sync.WaitGroup
			errs := make([]error, len(s.Parallel))
			for place, url := range s.Parallel {
				all.Add(1)
				go func() { defer all.Done(); errs[place] = call(ctx, url, s) }()
			}
			all.Wait()
			for _, err := range errs {
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func main() {
	var about spec
	if err := json.Unmarshal([]byte(os.Args[1]), &about); err != nil {
		log.Fatal(err)
	}
	slow.Store(math.Float64bits(1))
	provider := tracing.Start(os.Args[2], about.Name,
		attribute.String("service.instance.id", fmt.Sprint(about.Name, about.Port)))
	tracer = provider.Tracer("laboratory")
	slots := make(chan struct{}, max(about.Slots, 1))
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path[1:]
		if name == "slow" {
			var factor float64
			fmt.Sscan(r.URL.Query().Get("factor"), &factor)
			slow.Store(math.Float64bits(factor))
			return
		}
		if name == "flush" {
			provider.ForceFlush(context.Background())
			return
		}
		steps, known := about.Endpoints[name]
		if !known {
			http.NotFound(w, r)
			return
		}
		ctx := tracing.Carrier.Extract(context.Background(), propagation.HeaderCarrier(r.Header))
		ctx, span := tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		if about.Slots > 0 {
			slots <- struct{}{}
			defer func() { <-slots }()
		}
		if err := run(ctx, steps); err != nil {
			span.SetStatus(codes.Error, err.Error())
			http.Error(w, err.Error(), 503)
		}
	})
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", about.Port), nil))
}
