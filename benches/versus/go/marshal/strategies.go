package main

import (
	"bytes"
	"encoding/json"
	"sync"
)

// serial marshals one record after the other.
func serial(people []person) ([][]byte, error) {
	documents := make([][]byte, len(people))
	for index := range people {
		document, err := json.Marshal(&people[index])
		if err != nil {
			return nil, err
		}
		documents[index] = document
	}
	return documents, nil
}

// result is a document on its way back.
type result struct {
	index    int
	document []byte
	err      error
}

// parallel starts workers for this run, feeds them over a channel, and gathers by index.
func parallel(people []person, workers int) ([][]byte, error) {
	indices := make(chan int, workers)
	results := make(chan result, workers)
	for range workers {
		go func() {
			for index := range indices {
				document, err := json.Marshal(&people[index])
				results <- result{index, document, err}
			}
		}()
	}
	go func() {
		for index := range people {
			indices <- index
		}
		close(indices)
	}()
	return gather(results, len(people))
}

// gather takes all results, and gives the documents in order or the first error by index.
func gather(results <-chan result, count int) ([][]byte, error) {
	documents := make([][]byte, count)
	first, failed := count, error(nil)
	for range count {
		result := <-results
		documents[result.index] = result.document
		if result.err != nil && result.index < first {
			first, failed = result.index, result.err
		}
	}
	if failed != nil {
		return nil, failed
	}
	return documents, nil
}

// job is a record for the pool, and where its document goes.
type job struct {
	person  *person
	index   int
	results chan<- result
}

// pool is a limited number of workers that live across runs, with buffers that do.
type pool struct {
	jobs    chan job
	buffers sync.Pool
}

func newPool(workers int) *pool {
	p := &pool{
		jobs:    make(chan job, workers),
		buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
	for range workers {
		go func() {
			for job := range p.jobs {
				document, err := p.encode(job.person)
				job.results <- result{job.index, document, err}
			}
		}()
	}
	return p
}

// close ends the workers.
func (p *pool) close() { close(p.jobs) }

// encode writes a record into a buffer of the pool, and copies the document out of it.
func (p *pool) encode(person *person) ([]byte, error) {
	buffer := p.buffers.Get().(*bytes.Buffer)
	defer p.buffers.Put(buffer)
	buffer.Reset()
	if err := json.NewEncoder(buffer).Encode(person); err != nil {
		return nil, err
	}
	return bytes.Clone(bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))), nil
}

// marshal sends the records to the pool, and gathers by index.
func (p *pool) marshal(people []person) ([][]byte, error) {
	results := make(chan result, cap(p.jobs))
	go func() {
		for index := range people {
			p.jobs <- job{&people[index], index, results}
		}
	}()
	return gather(results, len(people))
}
