package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
)

// Transport is an http.RoundTripper for the HTTP client of a driver under test. Through it requests fail
// as often as Faults.Call and LostCall say, with an error of the connection or an answer of 429, 500 or
// 503; see World.Request. When the faults of the world stop, all requests are carried out and answered.
//
//	options.Driver = func(w *sim.World) driver.Driver {
//		return mine.New(&http.Client{Transport: &sim.Transport{World: w, Handler: fakeCloud}})
//	}
type Transport struct {
	// World is the one that the driver was made for.
	World *World
	// Handler is a provider in this process. It serves one request at a time.
	Handler http.Handler
	// Next makes the requests if there is no Handler. Nil: http.DefaultTransport.
	Next http.RoundTripper
}

// These are what a failing connection answers.
var (
	errRefusedHTTP = errors.New("sim: the connection was refused")
	errBrokenHTTP  = errors.New("sim: the connection broke before the answer came")
)

// statusError stands for an answer of that status.
type statusError int

// Error implements error.
func (e statusError) Error() string { return fmt.Sprintf("%d %s", int(e), http.StatusText(int(e))) }

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(q *http.Request) (*http.Response, error) {
	var a *http.Response
	used := false
	w := t.World
	err := w.ownCalls.request(q.Context(), &request{
		what: q.Method + " " + q.URL.Path,
		carryOut: func() (err error) {
			used = true
			a, err = t.carryOut(q)
			return err
		},
		refusal: func() error {
			if !w.fails() {
				return nil
			}
			return [...]error{
				errRefusedHTTP, statusError(http.StatusServiceUnavailable), statusError(http.StatusInternalServerError), statusError(http.StatusTooManyRequests),
			}[w.chance(4)]
		},
		lost: func() error {
			return [...]error{errBrokenHTTP, statusError(http.StatusServiceUnavailable), statusError(http.StatusInternalServerError)}[w.chance(3)]
		},
	})
	if err == nil {
		return a, nil
	}
	if a != nil {
		_ = a.Body.Close()
	}
	if q.Body != nil && !used {
		_ = q.Body.Close()
	}
	var status statusError
	if errors.As(err, &status) {
		return &http.Response{
			Status: status.Error(), StatusCode: int(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: http.NoBody, Request: q,
		}, nil
	}
	return nil, err
}

// carryOut has the provider answer a request.
func (t *Transport) carryOut(q *http.Request) (*http.Response, error) {
	switch {
	case t.Handler != nil:
	case t.Next != nil:
		return t.Next.RoundTrip(q)
	default:
		return http.DefaultTransport.RoundTrip(q)
	}
	served := q.Clone(context.WithoutCancel(q.Context()))
	served.RequestURI = q.URL.RequestURI()
	if served.Body == nil {
		served.Body = http.NoBody
	}
	defer func() { _ = served.Body.Close() }()
	if served.Host == "" {
		served.Host = strings.ToLower(q.URL.Host)
	}
	out := httptest.NewRecorder()
	t.Handler.ServeHTTP(out, served)
	a := out.Result()
	a.Request = q
	return a, nil
}
