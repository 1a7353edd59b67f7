// A service of the laboratory. It runs the steps of its endpoints and records spans with the OpenTelemetry SDK.
// ../README.md has the description, which all languages share.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sys/unix"

	"laboratory/tracing"
)

type step struct {
	Work     float64    `json:"work"`
	Burn     float64    `json:"burn"`
	Sigma    float64    `json:"sigma"`
	Call     []string   `json:"call"`
	Parallel [][]string `json:"parallel"`
	Chance   float64    `json:"chance"`
	policy
}

type spec struct {
	Name      string            `json:"name"`
	Port      int               `json:"port"`
	Slots     int               `json:"slots"`
	Endpoints map[string][]step `json:"endpoints"`
}

var (
	slow   atomic.Uint64
	tracer trace.Tracer
	// By the first address of each called service.
	routes = map[string]*route{}
)

func work(s step) {
	factor := math.Float64frombits(slow.Load()) * math.Exp(s.Sigma*rand.NormFloat64())
	time.Sleep(time.Duration(s.Work * factor * 1e6))
	if s.Burn > 0 {
		burn(int64(s.Burn * factor * 1e6))
	}
}

// burn uses a processor for this number of nanoseconds.
func burn(nanos int64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() int64 {
		var now unix.Timespec
		unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now)
		return now.Nano()
	}
	for until, spun := used()+nanos, 0; used() < until; {
		for range 1000 {
			spun++
		}
	}
}

func attempt(ctx context.Context, r *route) error {
	if !r.allows() {
		return errors.New("the breaker is open")
	}
	if r.Timeout > 0 {
		bounded, cancel := context.WithTimeout(ctx, time.Duration(r.Timeout*1e6))
		defer cancel()
		ctx = bounded
	}
	var err error
	// An instance without an open port is left out for a second, and another one is asked.
	for range r.urls {
		place := r.pick()
		err = send(ctx, r, r.urls[place])
		var op *net.OpError
		noInstance := errors.As(err, &op) && op.Op == "dial" && ctx.Err() == nil
		r.answered(place, noInstance)
		if !noInstance {
			break
		}
	}
	r.record(err != nil)
	return err
}

func send(ctx context.Context, r *route, url string) error {
	host := strings.SplitN(strings.TrimPrefix(url, "http://"), "/", 2)[0]
	ctx, span := tracer.Start(ctx, "GET", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("server.address", host)))
	defer span.End()
	return tracing.Get(ctx, r.client, span, url)
}

func call(ctx context.Context, urls []string) error {
	r := routes[urls[0]]
	r.earn()
	err := attempt(ctx, r)
	for retry := 0; err != nil && retry < r.Retries && r.spend(); retry++ {
		err = attempt(ctx, r)
	}
	return err
}

func run(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if s.Chance > 0 && rand.Float64() >= s.Chance {
			continue
		}
		if s.Work > 0 || s.Burn > 0 {
			work(s)
		}
		if len(s.Call) > 0 {
			if err := call(ctx, s.Call); err != nil {
				return err
			}
		}
		if len(s.Parallel) > 0 {
			var all sync.WaitGroup
			errs := make([]error, len(s.Parallel))
			for place, urls := range s.Parallel {
				all.Add(1)
				go func() { defer all.Done(); errs[place] = call(ctx, urls) }()
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
	for _, steps := range about.Endpoints {
		for _, s := range steps {
			for _, urls := range append(s.Parallel, s.Call) {
				if len(urls) > 0 {
					routes[urls[0]] = newRoute(urls, s.policy)
				}
			}
		}
	}
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
