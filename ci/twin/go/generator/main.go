// An open-loop load generator. Requests are sent at the times of a Poisson process that was drawn before, however
// long earlier ones take, and times are measured from when a request was due: there is no coordinated omission.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"laboratory/tracing"
)

// A plan: where to send, where traces go, and from when on (in seconds) how many requests a second.
type plan struct {
	Url       string       `json:"url"`
	Collector string       `json:"collector"`
	Seconds   float64      `json:"seconds"`
	Rates     [][2]float64 `json:"rates"`
	Seed      uint64       `json:"seed"`
}

// When a request was due after the start, and how long it took, in seconds.
type request struct {
	At     float64 `json:"at"`
	Took   float64 `json:"took"`
	Failed bool    `json:"failed"`
}

func main() {
	var p plan
	if err := json.Unmarshal([]byte(os.Args[1]), &p); err != nil {
		log.Fatal(err)
	}
	provider := tracing.Start(p.Collector, "www")
	tracer := provider.Tracer("generator")
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4096}, Timeout: time.Minute}

	random := rand.New(rand.NewPCG(p.Seed, 1))
	var due []float64
	for place, rate := range p.Rates {
		ends := p.Seconds
		if place+1 < len(p.Rates) {
			ends = p.Rates[place+1][0]
		}
		// A Poisson process has no memory: each piece begins afresh.
		for at := rate[0] + random.ExpFloat64()/rate[1]; at < ends; at += random.ExpFloat64() / rate[1] {
			due = append(due, at)
		}
	}
	results := make([]request, len(due))
	var all sync.WaitGroup
	start := time.Now()
	for place, at := range due {
		when := start.Add(time.Duration(at * 1e9))
		time.Sleep(time.Until(when))
		all.Add(1)
		go func() {
			defer all.Done()
			ctx, span := tracer.Start(context.Background(), "GET", trace.WithSpanKind(trace.SpanKindClient),
				trace.WithTimestamp(when))
			defer span.End()
			failed := tracing.Get(ctx, client, span, p.Url) != nil
			results[place] = request{at, time.Since(when).Seconds(), failed}
		}()
	}
	all.Wait()
	provider.Shutdown(context.Background())
	text, _ := json.Marshal(results)
	fmt.Println(string(text))
}
