package drivertest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Faults is the transport of the HTTP client of a driver under test: an http.RoundTripper. Through it
// the suite makes single requests fail below the driver: the provider is out, an answer is lost, a
// request hangs. Otherwise it passes requests on. The zero value is ready. It is safe for concurrent use.
//
//	faults := &drivertest.Faults{}
//	setup.Driver = mine.New(&http.Client{Transport: faults})
//	setup.Faults = faults
type Faults struct {
	// Base makes the requests. Nil: http.DefaultTransport.
	Base http.RoundTripper

	mu    sync.Mutex
	armed *fault // nil: none
}

// faultKind is what happens to a request.
type faultKind string

const (
	refused faultKind = "was answered 503 and not carried out"
	lost    faultKind = "was carried out, and its answer was lost"
	held    faultKind = "was held back"
)

// fault is what happens to one of the requests from now on.
type fault struct {
	kind    faultKind
	at      int // how many requests still pass before it
	request string
	met     chan struct{} // closed when the request has been made
	release chan struct{} // closed when a request that is held back may go on
	once    sync.Once
}

var errLost = errors.New("the connection broke before the answer came")

// arm lets the next at requests pass, and makes the one after them fail.
func (f *Faults) arm(kind faultKind, at int) *fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = &fault{kind: kind, at: at, met: make(chan struct{}), release: make(chan struct{})}
	return f.armed
}

// disarm ends a fault. A request that is held back goes on.
func (f *Faults) disarm(which *fault) {
	which.letGo()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.armed == which {
		f.armed = nil
	}
}

func (p *fault) letGo() { p.once.Do(func() { close(p.release) }) }

// wasMet reports whether the request has been made.
func (p *fault) wasMet() bool {
	select {
	case <-p.met:
		return true
	default:
		return false
	}
}

// due returns the fault of a request. Nil: it has none.
func (f *Faults) due(q *http.Request) *fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.armed
	switch {
	case p == nil:
		return nil
	case p.at > 0:
		p.at--
		return nil
	}
	f.armed = nil
	p.request = q.Method + " " + q.URL.Path
	close(p.met)
	return p
}

// RoundTrip implements http.RoundTripper.
func (f *Faults) RoundTrip(q *http.Request) (*http.Response, error) {
	base := f.Base
	if base == nil {
		base = http.DefaultTransport
	}
	p := f.due(q)
	switch {
	case p == nil:
		return base.RoundTrip(q)
	case p.kind == held:
		select {
		case <-p.release:
			return base.RoundTrip(q)
		case <-q.Context().Done():
			dropBody(q)
			return nil, q.Context().Err()
		}
	case p.kind == lost:
		a, err := base.RoundTrip(q)
		if err == nil {
			_, _ = io.Copy(io.Discard, a.Body)
			_ = a.Body.Close()
		}
		return nil, errLost
	}
	dropBody(q)
	return &http.Response{
		Status: "503 Service Unavailable", StatusCode: http.StatusServiceUnavailable,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: q,
	}, nil
}

func dropBody(q *http.Request) {
	if q.Body != nil {
		_ = q.Body.Close()
	}
}
