package main

import (
	"net/http"
	"sync"
	"time"
)

// The policies for calls to a service. They mean what they mean in definitions; times are in milliseconds.
type policy struct {
	Balance     string  `json:"balance"`
	Connections int     `json:"connections"`
	Timeout     float64 `json:"timeout"`
	Retries     int     `json:"retries"`
	Budget      *struct {
		Share float64 `json:"share"`
		Burst float64 `json:"burst"`
	} `json:"budget"`
	// It opens for a time when this share of a full window has failed. One probe closes it.
	Breaker *struct {
		Failures float64 `json:"failures"`
		Window   int     `json:"window"`
		Open     float64 `json:"open"`
	} `json:"breaker"`
}

// A route has the instances of a called service, and the state of the policies.
type route struct {
	policy
	urls   []string
	client *http.Client
	sync.Mutex
	next int
	busy []int
	// The times until which instances are left out, and until which the breaker is open.
	down      []time.Time
	openUntil time.Time
	saved     float64
	isProbing bool
	// The last attempts; true for failures.
	last []bool
}

func newRoute(urls []string, p policy) *route {
	transport := &http.Transport{MaxIdleConnsPerHost: 512, MaxConnsPerHost: p.Connections}
	r := &route{policy: p, urls: urls, client: &http.Client{Transport: transport}}
	r.busy, r.down = make([]int, len(urls)), make([]time.Time, len(urls))
	if p.Budget != nil {
		r.saved = p.Budget.Burst
	}
	return r
}

// pick chooses an instance: the next one, or the next one of those with the fewest requests.
func (r *route) pick() int {
	r.Lock()
	defer r.Unlock()
	chosen, least := 0, int(^uint(0)>>1)
	for offset := range r.urls {
		place, cost := (r.next+offset)%len(r.urls), 0
		if r.Balance == "least_requests" {
			cost = r.busy[place]
		}
		if time.Now().Before(r.down[place]) {
			cost += 1_000_000
		}
		if cost < least {
			chosen, least = place, cost
		}
	}
	r.next = chosen + 1
	r.busy[chosen]++
	return chosen
}

func (r *route) answered(place int, noInstance bool) {
	r.Lock()
	defer r.Unlock()
	r.busy[place]--
	if noInstance {
		r.down[place] = time.Now().Add(time.Second)
	}
}

// earn adds the share of a call to the budget of retries.
func (r *route) earn() {
	r.Lock()
	defer r.Unlock()
	if r.Budget != nil {
		r.saved = min(r.saved+r.Budget.Share, r.Budget.Burst)
	}
}

// spend takes a retry from the budget.
func (r *route) spend() bool {
	r.Lock()
	defer r.Unlock()
	if r.Budget != nil && r.saved < 1-1e-9 {
		return false
	}
	r.saved--
	return true
}

func (r *route) allows() bool {
	r.Lock()
	defer r.Unlock()
	if r.openUntil.IsZero() {
		return true
	}
	allows := !r.isProbing && !time.Now().Before(r.openUntil)
	r.isProbing = r.isProbing || allows
	return allows
}

func (r *route) record(failed bool) {
	r.Lock()
	defer r.Unlock()
	if r.Breaker == nil || !r.openUntil.IsZero() && !r.isProbing {
		return // The attempt was made before the breaker opened.
	}
	r.last = append(r.last, failed)
	r.last = r.last[max(0, len(r.last)-r.Breaker.Window):]
	failures := 0
	for _, one := range r.last {
		if one {
			failures++
		}
	}
	isFull := len(r.last) == r.Breaker.Window && float64(failures) >= r.Breaker.Failures*float64(r.Breaker.Window)-1e-6
	if r.isProbing && !failed {
		r.openUntil, r.last = time.Time{}, nil
	} else if r.isProbing || isFull {
		r.openUntil, r.last = time.Now().Add(time.Duration(r.Breaker.Open*1e6)), nil
	}
	r.isProbing = false
}
